#include "process/names/program_names.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/hash.h"
#include "symbols/demangle.h"
#include "symbols/elf_symbols.h"

namespace slalom {
namespace {

// Returns the number that loading added to the addresses in the file.
uint64_t load_bias(const Zygote::Module& module) {
  std::ifstream file(module.path, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  return file && header.e_type == ET_DYN ? module.begin : 0;
}

bool is_library_code(const std::string& symbol) {
  // These hold the user's object and do not call it.
  for (const char* holder : {"_ZNSt23_Sp_counted_ptr_inplace", "_ZNSt15_Sp_counted_ptr",
                             "_ZNSt14__shared_count", "_ZNSt10unique_ptr"})
    if (symbol.rfind(holder, 0) == 0) return true;
  // These call the user's function, which is mostly inlined there.
  for (const char* caller : {"_Function_handler", "_State_impl", "_Invoker", "__invoke", "_Task_setter"})
    if (symbol.find(caller) != std::string::npos) return false;
  for (const char* prefix : {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_ZGVZNSt"})
    if (symbol.rfind(prefix, 0) == 0) return true;
  return symbol.find("__gthread_") != std::string::npos;
}

// Returns whether the symbol marks where a section begins or ends. The linker makes these; they are no
// variables of the program.
bool is_mark(const Symbol& symbol) {
  for (const char* mark : {"__bss_start", "_edata", "edata", "_end", "end", "__data_start", "data_start",
                           "__TMC_END__", "__dso_handle"})
    if (symbol.name == mark) return true;
  return false;
}

SymbolTable without_marks(const SymbolTable& all) {
  std::vector<Symbol> symbols;
  std::ranges::copy_if(all.symbols(), std::back_inserter(symbols),
                       [](const Symbol& symbol) { return !is_mark(symbol); });
  return SymbolTable(std::move(symbols));
}

}  // namespace

void ProgramNames::learn_modules(const std::vector<Zygote::Module>& modules) {
  std::lock_guard lock(mutex_);
  if (!modules_.empty()) return;
  for (const Zygote::Module& module : modules) modules_.emplace_back().where = module;
}

std::vector<Zygote::Module> ProgramNames::modules() const {
  std::lock_guard lock(mutex_);
  std::vector<Zygote::Module> all;
  for (const Module& module : modules_) all.push_back(module.where);
  return all;
}

// Almost always derives the address from the path alone, so that it is the same in another process.
uint64_t ProgramNames::add_module(const std::string& path, uint32_t instance, uint64_t size) {
  constexpr uint64_t kSpacing = uint64_t{1} << 30;
  std::lock_guard lock(mutex_);
  for (const Module& module : modules_)
    if (module.instance == instance && module.where.path == path &&
        module.where.end - module.where.begin == size)
      return module.where.begin;
  for (uint64_t tried = combine(hash_text(path), instance);; ++tried) {
    const uint64_t begin = kAdded + tried % (kAddedSize / kSpacing - 1) * kSpacing;
    const bool taken = std::ranges::any_of(modules_, [&](const Module& module) {
      return module.where.begin < begin + size && begin < module.where.end;
    });
    if (taken) continue;
    Module& module = modules_.emplace_back();
    module.where = {path, begin, begin + size, true};
    module.instance = instance;
    return begin;
  }
}

void ProgramNames::learn_agent(AgentId id, uint64_t entry) {
  std::lock_guard lock(mutex_);
  entries_.try_emplace(id, entry);
}

void ProgramNames::forget_agents() {
  std::lock_guard lock(mutex_);
  entries_.clear();
}

const DebugInfo* ProgramNames::debug_of(uint64_t address) const {
  return debug_of(module_of(address));
}

const DebugInfo* ProgramNames::debug_of(Module* module) const {
  if (module == nullptr || !module->where.user) return nullptr;
  if (!std::exchange(module->debug_tried, true)) {
    Result<DebugInfo> opened = DebugInfo::open({{module->where.path, load_bias(module->where), {}}});
    if (opened.ok()) module->debug.emplace(std::move(*opened));
  }
  return module->debug ? &*module->debug : nullptr;
}

const ProgramNames::Line* ProgramNames::line_of(uint64_t pc) const {
  const auto [known, added] = lines_.try_emplace(pc);
  Line& line = known->second;
  if (!added) return line.file.empty() ? nullptr : &line;
  const DebugInfo* debug = debug_of(pc);
  const std::optional<SourcePlace> place = debug != nullptr ? debug->at(pc) : std::nullopt;
  if (!place || place->line <= 0) return nullptr;
  line = {place->file, place->line, place->function};
  for (const SourcePlace::Call& call : place->inlined_into) {
    if (line.file.rfind("/usr/", 0) != 0) break;
    line = {call.file, call.line, call.function};
  }
  if (!line.file.empty() && line.file[0] != '/' && !place->folder.empty())
    line.file = place->folder + "/" + line.file;
  return &line;
}

const SymbolTable& ProgramNames::symbols_of(Module& module) const {
  if (module.symbols) return *module.symbols;
  module.symbols.emplace();
  const Result<std::vector<uint8_t>> file = read_file(module.where.path);
  if (!file.ok()) return *module.symbols;
  Result<SymbolTable> symbols = read_elf_symbols(*file, load_bias(module.where));
  if (symbols.ok()) module.symbols = without_marks(*symbols);
  return *module.symbols;
}

ProgramNames::Module* ProgramNames::module_of(uint64_t address) const {
  for (Module& module : modules_)
    if (address >= module.where.begin && address < module.where.end) return &module;
  return nullptr;
}

ProgramNames::Found ProgramNames::find_with_module(uint64_t address) const {
  for (Module& module : modules_) {
    // Zeroed variables lie behind the data that comes from the file.
    const uint64_t behind = module.instance == 0 ? uint64_t{1} << 28 : 0;
    if (address < module.where.begin || address >= module.where.end + behind) continue;
    if (const Symbol* symbol = symbols_of(module).at(address)) return {symbol, &module};
  }
  return {};
}

std::vector<ProgramNames::Code> ProgramNames::code_of(uint64_t begin) const {
  std::lock_guard lock(mutex_);
  std::vector<Code> all;
  Module* module = module_of(begin);
  if (module == nullptr) return all;
  for (const Symbol& symbol : symbols_of(*module).symbols())
    if (symbol.is_code() && symbol.size > 0)
      all.push_back({symbol.name, {{symbol.address, symbol.address + symbol.size}}});
  const DebugInfo* debug = debug_of(begin);
  if (debug == nullptr) return all;
  for (InlinedCode& inlined : debug->inlined_code()) {
    Code& code = all.emplace_back(Code{std::move(inlined.symbol), {}, true});
    for (const InlinedCode::Range& range : inlined.ranges) code.ranges.push_back({range.begin, range.end});
  }
  return all;
}

// A module's strings contain the names of the functions that it imports.
bool ProgramNames::may_load() const {
  using namespace std::literals;
  for (const Zygote::Module& module : modules()) {
    const std::string name = std::filesystem::path(module.path).filename().string();
    if (module.ours || name.starts_with("libc.so") || name.starts_with("ld-linux")) continue;
    const Result<std::vector<uint8_t>> file = read_file(module.path);
    if (!file.ok()) continue;
    for (const std::string_view function : {"\0dlopen\0"sv, "\0dlmopen\0"sv})
      if (std::search(file->begin(), file->end(), function.begin(), function.end()) != file->end())
        return true;
  }
  return false;
}

bool ProgramNames::defines(const std::string& path, const std::string& function) const {
  std::lock_guard lock(mutex_);
  for (Module& module : modules_) {
    if (module.where.path != path) continue;
    for (const Symbol* symbol : symbols_of(module).named(function))
      if (symbol->is_code() && symbol->size > 0) return true;
  }
  return false;
}

std::vector<preload::Range> ProgramNames::variables(const std::string& symbol) const {
  std::lock_guard lock(mutex_);
  std::vector<preload::Range> ranges;
  for (Module& module : modules_) {
    if (!module.where.user) continue;
    for (const Symbol* found : symbols_of(module).named(symbol))
      ranges.push_back({found->address, found->address + found->size});
  }
  return ranges;
}

std::vector<preload::Range> ProgramNames::wrappers() const {
  std::vector<preload::Range> all;
  for (const Zygote::Module& module : modules())
    if (module.user && !is_of_added(module.begin))
      std::ranges::copy(wrappers(module.begin), std::back_inserter(all));
  std::ranges::sort(all, {}, &preload::Range::begin);
  return all;
}

std::vector<preload::Range> ProgramNames::wrappers(uint64_t begin) const {
  std::lock_guard lock(mutex_);
  std::vector<preload::Range> ranges;
  if (Module* found = module_of(begin)) {
    Module& module = *found;
    for (const Symbol& symbol : symbols_of(module).symbols())
      if (symbol.is_code() && symbol.size > 0 && is_library_code(symbol.name))
        ranges.push_back({symbol.address, symbol.address + symbol.size});
  }
  std::ranges::sort(ranges, {}, &preload::Range::begin);
  return ranges;
}

std::string ProgramNames::role(AgentId id) const {
  std::lock_guard lock(mutex_);
  if (id == AgentId::initial(0)) return "main";
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return "thread";
  const Symbol* symbol = find(entry->second);
  return symbol == nullptr ? "thread" : short_name(symbol->name);
}

// Returns the line where the lambda's code begins.
std::string ProgramNames::lambda_line(uint64_t entry) const {
  const Symbol* symbol = find(entry);
  Module* module = module_of(entry);
  if (symbol == nullptr || module == nullptr) return {};
  // The lambda is a function of its own, or the compiler has inlined it into the standard library's caller.
  for (uint64_t pc = symbol->address; pc < symbol->address + symbol->size; ++pc)
    if (const Line* line = line_of(pc); line != nullptr && line->file.rfind("/usr/", 0) != 0)
      return fmt::format(":{}", line->number);
  const std::string body = short_name(symbol->name) + "::operator()";
  for (const Symbol& other : symbols_of(*module).symbols())
    if (other.is_code() && other.name.find("clE") != std::string::npos &&
        demangle(other.name).starts_with(body))
      if (const Line* line = line_of(other.address)) return fmt::format(":{}", line->number);
  return {};
}

std::string ProgramNames::agent(AgentId id) const {
  if (id == AgentId::initial(0)) return "main";
  std::string who = role(id);
  if (who.ends_with('}') && who.find("{lambda(") != std::string::npos) {
    // The names of lambdas differ only at their ends.
    std::lock_guard lock(mutex_);
    const uint64_t entry = entries_.at(id);
    const auto [known, added] = lambda_lines_.try_emplace(entry);
    if (added) known->second = lambda_line(entry);
    if (!known->second.empty()) who = "lambda" + known->second;
  }
  const std::string path = id.path();
  if (id.parent() == AgentId::initial(0)) return fmt::format("{}#{}", who, path.substr(path.rfind('.') + 1));
  return fmt::format("{}@{}", who, path);
}

std::string ProgramNames::place(Place pc) const {
  std::lock_guard lock(mutex_);
  if (const Line* line = line_of(pc.raw)) {
    const std::string file = std::filesystem::path(line->file).filename().string();
    const std::string function =
        line->function.empty() ? "" : fmt::format(" ({})", short_name(line->function));
    return fmt::format("{}:{}{}", file, line->number, function);
  }
  if (const Symbol* symbol = find(pc.raw))
    return fmt::format("{}+{:#x}", short_name(symbol->name), pc.raw - symbol->address);
  if (const Module* module = module_of(pc.raw))
    return fmt::format("{}+{:#x}", std::filesystem::path(module->where.path).filename().string(),
                       pc.raw - module->where.begin);
  return "?";
}

std::string ProgramNames::source(Place pc) const {
  std::lock_guard lock(mutex_);
  return source_of(pc.raw);
}

std::string ProgramNames::source_of(uint64_t pc) const {
  const Line* line = line_of(pc);
  if (line == nullptr) return {};
  std::ifstream file(line->file);
  std::string text;
  for (int i = 0; i < line->number; ++i)
    if (!std::getline(file, text)) return {};
  const size_t first = text.find_first_not_of(" \t");
  const size_t last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace slalom
