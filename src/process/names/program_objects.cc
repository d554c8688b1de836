// ProgramNames: the names of a program's memory: global variables with their members, variables on stacks,
// and blocks of the heap.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text/characters.h"
#include "process/names/allocation_text.h"
#include "process/names/program_names.h"
#include "symbols/demangle.h"

namespace slalom {
namespace {

std::string openmp_object(uint64_t number) {
  using preload::OpenMpObject;
  switch (static_cast<OpenMpObject>(number >> preload::kOpenMpBits)) {
    case OpenMpObject::Team:
      return "team";
    case OpenMpObject::Barrier:
      return "barrier";
    case OpenMpObject::Loop:
      return "loop";
    case OpenMpObject::Ordered:
      return "ordered";
    case OpenMpObject::Tasks:
      return "tasks";
    case OpenMpObject::Critical:
      return "critical";
    case OpenMpObject::Atomic:
      return "atomic";
    case OpenMpObject::Cancellation:
      return "cancellation";
  }
  return "team";
}

// Returns the variable's name; "critical(name)" for the variable that the compiler makes for an OpenMP
// critical section.
std::string variable_name(const std::string& symbol) {
  constexpr std::string_view kCritical = ".gomp_critical_user_";
  return symbol.starts_with(kCritical) ? fmt::format("critical({})", symbol.substr(kCritical.size()))
                                       : demangle(symbol);
}

// gcc adds numbers to static variables of functions ("calls.0"), and they differ between compilations.
bool is_numbered(const std::string& symbol, const std::string& variable) {
  if (!symbol.starts_with(variable + '.') || symbol.size() == variable.size() + 1) return false;
  return std::all_of(symbol.begin() + static_cast<ptrdiff_t>(variable.size()) + 1, symbol.end(), is_digit);
}

std::string last_word(const std::string& expression) {
  const std::string bare = expression.substr(0, expression.find('['));
  const size_t at = bare.find_last_of(".>");
  return at == std::string::npos ? bare : bare.substr(at + 1);
}

bool has_word(const std::string& text, const std::string& word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_part(text[at - 1])) && !is_part(text[at + word.size()])) return true;
  return false;
}

// Bytes that make_shared() puts before the object.
constexpr uint64_t kSharedCounts = 16;
// Bytes that new T[n] puts before the first element, if the elements have destructors.
constexpr uint64_t kArrayCount = 8;

}  // namespace

std::string ProgramNames::object(ObjectId id) const {
  if (id.raw == 0) return {};
  if (const AgentId thread{id.raw}; (id.raw >> 56) != 0) {
    const bool signals = thread.parent() && thread == thread.parent().interrupt(0);
    return signals ? fmt::format("signals of {}", agent(thread.parent())) : agent(thread);
  }
  if (id.raw < preload::kChannelObjects && (id.raw & preload::kGateBit) != 0)
    return object(ObjectId{id.raw & ~preload::kGateBit});
  if (id.raw == preload::kSignalObject) return "signals";
  if (id.raw == preload::kChildObject) return "child processes";
  if (id.raw == preload::kForkObject) return "a process";
  if (id.raw >= preload::kOpenMpObjects) return openmp_object(id.raw - preload::kOpenMpObjects);
  if (id.raw >= preload::kQueueObjects) return fmt::format("queue#{}", id.raw - preload::kQueueObjects);
  if (id.raw >= preload::kSemaphoreObjects)
    return fmt::format("semaphores#{}", id.raw - preload::kSemaphoreObjects);
  if (id.raw >= preload::kFileObjects) return fmt::format("file lock#{}", id.raw - preload::kFileObjects);
  if (id.raw >= preload::kTimerObjects) return fmt::format("timer#{}", id.raw - preload::kTimerObjects);
  if (id.raw >= preload::kChannelObjects) return fmt::format("channel#{}", id.raw - preload::kChannelObjects);
  std::lock_guard lock(mutex_);
  if (std::string name = global(id.raw); !name.empty()) return name;
  constexpr uint64_t kMainStack = 0x7ff000000000;
  return fmt::format("{}@{:x}", id.raw >= kMainStack ? "local" : "heap", id.raw);
}

// Names a variable, and its member if debug information knows it.
std::string ProgramNames::global(uint64_t address) const {
  const auto [known, added] = globals_.try_emplace(address);
  std::string& name = known->second;
  if (!added) return name;
  const auto [symbol, module] = find_with_module(address);
  if (symbol == nullptr) return name;
  name = variable_name(symbol->name);
  const DebugInfo* debug = symbol->is_code() ? nullptr : debug_of(module);
  if (const std::optional<VariablePart> part = debug != nullptr ? debug->variable(address) : std::nullopt) {
    if (is_numbered(name, part->name)) name = part->name;
    name += part->part;
  } else if (address != symbol->address) {
    name += fmt::format("+{}", address - symbol->address);
  }
  return name;
}

void ProgramNames::learn_local(uint64_t address, const StackFrame& now, const StackFrame& before,
                               AgentId agent) {
  std::lock_guard lock(mutex_);
  const DebugInfo* debug = debug_of(now.pc);
  std::optional<VariablePart> part = debug != nullptr ? debug->local(now, address) : std::nullopt;
  if (part && before != now && debug->local(before, address) != part) part.reset();
  std::optional<Local> local;
  if (part) local = Local{part->name + part->part, part->name, part->function, agent};
  const auto [known, added] = locals_.try_emplace(address, local);
  if (!added && known->second != local) known->second.reset();
}

bool ProgramNames::is_unnamed(uint64_t address) const {
  std::lock_guard lock(mutex_);
  return global(address).empty();
}

bool ProgramNames::is_user_code(uint64_t pc) const {
  std::lock_guard lock(mutex_);
  const Module* module = module_of(pc);
  return module != nullptr && module->where.user;
}

void ProgramNames::forget_locals() {
  std::lock_guard lock(mutex_);
  locals_.clear();
  pointed_.clear();
}

std::vector<PointerVariable> ProgramNames::pointers(const StackFrame& frame) const {
  std::lock_guard lock(mutex_);
  const DebugInfo* debug = debug_of(frame.pc);
  return debug == nullptr ? std::vector<PointerVariable>() : debug->pointers(frame);
}

// A pointer that was never set may point anywhere. So a pointer counts only if the source line uses it, and
// if its object has a part at the address.
bool ProgramNames::learn_object(uint64_t pc, const DebugType& type, uint64_t begin, uint64_t address,
                                const std::string& pointer) {
  std::lock_guard lock(mutex_);
  const uint64_t size = DebugInfo::size_of(type).value_or(0);
  if (address - begin >= size || DebugInfo::is_library(type)) return false;
  const std::string part = DebugInfo::part(type, address - begin);
  if (!part.starts_with('.') || part.find('+') != std::string::npos) return false;
  const std::string line = source_of(pc), member = part.substr(1, part.find_first_of(".[", 1) - 1);
  if (!has_word(line, pointer) && (pointer != "this" || !has_word(line, member))) return false;
  const auto [known, added] = pointed_.try_emplace(begin, Object{type, size});
  if (!added && DebugInfo::name_of(known->second.type) != DebugInfo::name_of(type))
    known->second.has_several = true;
  return true;
}

std::optional<Names::Pointed> ProgramNames::pointed(ObjectId id) const {
  std::lock_guard lock(mutex_);
  std::optional<Pointed> found;
  uint64_t size = 0;
  for (const auto& [begin, object] : pointed_) {
    if (begin > id.raw) break;
    const uint64_t offset = id.raw - begin;
    if (offset >= object.size || object.size <= size) continue;
    if (object.has_several) return std::nullopt;
    size = object.size;
    const std::string part = DebugInfo::part(object.type, offset);
    found = Pointed{begin, size, DebugInfo::name_of(object.type),
                    part.starts_with('.') ? "->" + part.substr(1) : part};
  }
  return found;
}

std::optional<Names::Local> ProgramNames::local(ObjectId id) const {
  std::lock_guard lock(mutex_);
  const auto known = locals_.find(id.raw);
  return known == locals_.end() ? std::nullopt : known->second;
}

const ProgramNames::KnownBlock& ProgramNames::known_block(uint64_t pc, uint64_t size) const {
  const auto [known, added] = blocks_.try_emplace({pc, size});
  if (added) known->second = read_block(pc, size);
  return known->second;
}

// Takes the type from the source line of the allocation, or from the pointer that the line sets. The type's
// size must match the block's. An ambiguous type counts as unknown.
ProgramNames::KnownBlock ProgramNames::read_block(uint64_t pc, uint64_t size) const {
  using Form = AllocationText::Form;
  KnownBlock block;
  const DebugInfo* debug = debug_of(pc);
  const AllocationText text = read_allocation(source_of(pc));
  if (debug == nullptr) return block;
  const std::optional<DebugType> set =
      text.assigned.empty() ? std::nullopt : debug->pointee(pc, text.assigned);
  std::optional<DebugType> type;
  Form form = text.form;
  if (!text.type.empty()) {
    type = debug->type_named(pc, text.type);
  } else if (!text.pointer.empty()) {
    type = debug->pointee(pc, text.pointer);
  }
  const std::string variable = set && DebugInfo::size_of(*set) ? last_word(text.assigned) : "";
  if (!type && set && (text.type.empty() || DebugInfo::name_of(*set).empty())) {
    type = set;
    // A block of a type without a name, such as int, may hold several elements.
    if (form == Form::Unknown && DebugInfo::name_of(*set).empty()) form = Form::Sizeof;
  }
  const uint64_t element = type ? DebugInfo::size_of(*type).value_or(0) : 0;
  if (element == 0) {
    block.words.name = text.type.empty() ? variable : last_word(text.type);
    return block;
  }
  bool fits = false;
  switch (form) {
    case Form::Unknown:
    case Form::One:
      fits = size == element;
      break;
    case Form::Array:
      fits = size % element == 0 || (size > kArrayCount && (size - kArrayCount) % element == 0);
      block.is_array = true;
      block.first = size % element == 0 ? 0 : kArrayCount;
      // For small elements, the block may be one with a count or one without.
      if (kArrayCount % element == 0 && !DebugInfo::name_of(*type).empty()) block.first = size;
      break;
    case Form::Shared:
      fits = size >= kSharedCounts + element && size < kSharedCounts + element + kArrayCount;
      block.first = kSharedCounts;
      break;
    case Form::Sizeof:
      fits = size % element == 0;
      block.is_array = size != element;
      break;
    case Form::Tail:
      fits = size >= element;
      break;
  }
  if (!fits) {
    block = {};
    block.words.name = variable;
    return block;
  }
  block.type = type;
  block.element = element;
  const std::string name = DebugInfo::name_of(*type);
  // The variable that points to a mutex is a better name than the mutex's type.
  if (DebugInfo::is_library(*type) && !variable.empty()) {
    block.words.name = variable;
    return block;
  }
  block.words.name = !name.empty() ? name : variable;
  block.words.type = name;
  if (block.is_array && !name.empty() && block.first < size)
    block.words.type += fmt::format("[{}]", (size - block.first) / element);
  return block;
}

Names::Block ProgramNames::block(Place allocated, uint64_t size) const {
  std::lock_guard lock(mutex_);
  return known_block(allocated.raw, size).words;
}

std::string ProgramNames::block_part(Place allocated, uint64_t size, uint64_t offset) const {
  std::lock_guard lock(mutex_);
  const KnownBlock& block = known_block(allocated.raw, size);
  const std::string plain = offset == 0 ? "" : fmt::format("+{}", offset);
  if (!block.type || offset < block.first) return plain;
  const uint64_t inside = offset - block.first;
  if (!block.is_array && inside >= block.element) return plain;
  const std::string part = DebugInfo::part(*block.type, inside % block.element);
  if (block.is_array) return fmt::format("[{}]{}", inside / block.element, part);
  return part.starts_with('.') ? "->" + part.substr(1) : part;
}

}  // namespace slalom
