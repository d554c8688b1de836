#include "report/core/object_names.h"

#include <fmt/format.h>

#include <regex>
#include <set>

namespace slalom {
namespace {

// "heap@55555576a2c0": where the address begins; npos: the name says more than that.
size_t address_in(const std::string& name) {
  for (const std::string_view bare : {"heap@", "local@"})
    if (name.starts_with(bare)) return bare.size();
  return std::string::npos;
}

uint64_t address_of(const std::string& name) {
  return std::strtoull(name.c_str() + address_in(name), nullptr, 16);
}

// How sure a use of an object is about what it is.
std::string kind_of(OpKind op) {
  switch (op) {
    case OpKind::Lock:
    case OpKind::TryLock:
    case OpKind::Unlock:
      return "mutex";
    case OpKind::ReadLock:
    case OpKind::ReadUnlock:
    case OpKind::WriteLock:
    case OpKind::WriteUnlock:
      return "rwlock";
    case OpKind::Wait:
    case OpKind::Signal:
    case OpKind::Broadcast:
      return "condition";
    case OpKind::SemWait:
    case OpKind::SemPost:
      return "semaphore";
    case OpKind::BarrierArrive:
      return "barrier";
    default:
      return "";
  }
}

constexpr char kExpression[] = R"(((?:this->)?[A-Za-z_]\w*(?:(?:\.|->|::)\w+|\[[\w+\-]*\])*))";

std::string without_this(const std::string& expression) {
  return expression.starts_with("this->") ? expression.substr(6) : expression;
}

}  // namespace

std::string lock_expression(const std::string& source, OpKind op) {
  static const std::regex kCall(
      R"(\b(?:pthread_(?:mutex|rwlock|cond|spin|barrier)|sem|mtx|cnd)_(\w+)\s*\(\s*&?\s*)" +
      std::string(kExpression) + R"(\s*(?:,\s*&?\s*)" + kExpression + R"()?\s*[,)])");
  static const std::regex kGuard(
      R"(\b(?:lock_guard|unique_lock|scoped_lock|shared_lock)\b\s*(?:<[^;(]*>)?\s*\w*\s*[({]\s*)" +
      std::string(kExpression) + R"(\s*([,)}]))");
  static const std::regex kMethod(
      std::string(kExpression) +
      R"((?:\.|->)(lock|unlock|try_lock\w*|lock_shared|unlock_shared|wait\w*|notify_\w+|)"
      R"(acquire|try_acquire\w*|release|arrive\w*|count_down)\s*\()");
  const bool of_mutex = op == OpKind::Lock || op == OpKind::TryLock || op == OpKind::Unlock;
  std::set<std::string> found;
  const auto each = [&](const std::regex& pattern, auto take) {
    for (std::sregex_iterator at(source.begin(), source.end(), pattern), end; at != end; ++at) take(*at);
  };
  each(kCall, [&](const std::smatch& match) {
    // A wait names its condition variable, then the mutex.
    const bool waits = match[1].str().find("wait") != std::string::npos && match[3].matched;
    found.insert(without_this(waits && of_mutex ? match[3] : match[2]));
  });
  each(kGuard, [&](const std::smatch& match) {
    found.insert(without_this(match[1]));
    if (match[2] == "," && source.find("scoped_lock") != std::string::npos) found.insert("");  // of several
  });
  each(kMethod, [&](const std::smatch& match) {
    if (!of_mutex || match[2].str().find("wait") == std::string::npos) found.insert(without_this(match[1]));
  });
  return found.size() == 1 ? *found.begin() : "";
}

std::string allocated_type(const std::string& source) {
  static const std::regex kNamed(
      R"(\bnew\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w*(?:::\w+)*)|\bmake_(?:shared|unique)\s*<\s*([A-Za-z_]\w*(?:::\w+)*))"
      R"(|\bsizeof\s*\(?\s*(?:struct\s+)?([A-Za-z_]\w*)|\bsizeof\s*\(?\s*\*\s*([A-Za-z_]\w*))");
  static const std::set<std::string> kBuiltin = {"char",  "int",    "long", "short", "unsigned", "signed",
                                                 "float", "double", "bool", "void",  "auto",     "const"};
  std::set<std::string> found;
  for (std::sregex_iterator at(source.begin(), source.end(), kNamed), end; at != end; ++at)
    for (size_t group = 1; group < at->size(); ++group)
      if ((*at)[group].matched) found.insert((*at)[group]);
  if (found.size() == 1 && !kBuiltin.contains(*found.begin())) return *found.begin();
  static const std::regex kAssigned(R"(([A-Za-z_]\w*)\s*=[^=].*\b(?:new|\w*alloc\w*|strdup)\b)");
  std::smatch match;
  return std::regex_search(source, match, kAssigned) ? match[1].str() : "";
}

ObjectNames::ObjectNames(const TraceLog& log, const Names& names) : names_(names) {
  for (const Event& event : log.events())
    if (event.op == OpKind::Alloc) add_block(event);
  std::set<ObjectId> accessed;
  for (const TraceLog::Entry& entry : log.order()) {
    if (entry.what == TraceLog::Entry::What::Event) {
      const Event& event = log.events()[entry.index];
      note(event.object, event.op, event.pc);
      continue;
    }
    const TraceLog::Batch& batch = log.batches()[entry.index];
    for (uint64_t i = batch.first; i < batch.first + batch.count; ++i)
      if (const Access& access = log.accesses()[i]; accessed.insert(access.address()).second)
        note(access.address(), access.op(), access.pc());
  }
  if (const auto* deadlock = std::get_if<Deadlocked>(&log.outcome()))
    for (const auto& waiting : deadlock->waiting) note(waiting.object, waiting.op, waiting.pc);

  std::map<std::string, uint32_t> same;
  for (const std::string& key : order_)
    if (const Object& object = objects_.at(key); !object.expression.empty()) ++same[object.expression];
  std::map<std::string, uint32_t> used;
  for (const std::string& key : order_) {
    Object& object = objects_.at(key);
    const std::optional<std::string> block = in_block(address_of(key));
    if (!object.expression.empty()) {
      const bool alone = same[object.expression] == 1;
      object.name =
          alone ? object.expression : fmt::format("{}#{}", object.expression, ++used[object.expression]);
    } else if (block) {
      object.name = *block;
    } else {
      const std::string kind = object.kind.empty() ? key.substr(0, key.find('@')) : object.kind;
      object.name = fmt::format("{}#{}", kind, ++used[kind]);
    }
  }
}

void ObjectNames::add_block(const Event& event) {
  const uint64_t begin = event.object.raw,
                 end = begin + static_cast<uint64_t>(std::max<int64_t>(event.value, 1));
  if (address_in(names_.object(event.object)) == std::string::npos) return;
  std::string type = allocated_type(names_.source(event.pc));
  if (type.empty()) type = "heap";
  Block block{end - begin, fmt::format("{}#{}", type, ++block_count_[type])};
  auto at = blocks_.upper_bound(begin);
  if (at != blocks_.begin() && std::prev(at)->first + std::prev(at)->second.size > begin) --at;
  for (; at != blocks_.end() && at->first < end; ++at) at->second.name = block.name = "";
  if (const auto [known, added] = blocks_.try_emplace(begin, block); !added) {
    known->second.size = std::max(known->second.size, block.size);
    known->second.name.clear();
  }
}

void ObjectNames::note(ObjectId id, OpKind op, Place pc) {
  if (id.raw == 0) return;
  const std::string key = names_.object(id);
  if (address_in(key) == std::string::npos) return;
  const auto [known, added] = objects_.try_emplace(key);
  if (added) order_.push_back(key);
  Object& object = known->second;
  if (object.kind.empty()) object.kind = kind_of(op);
  if (object.expression.empty() && !kind_of(op).empty())
    object.expression = lock_expression(names_.source(pc), op);
}

std::optional<std::string> ObjectNames::in_block(uint64_t address) const {
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return std::nullopt;
  --block;
  const uint64_t offset = address - block->first;
  if (offset >= block->second.size || block->second.name.empty()) return std::nullopt;
  return offset == 0 ? block->second.name : fmt::format("{}+{}", block->second.name, offset);
}

std::string ObjectNames::object(ObjectId id) const {
  std::string name = names_.object(id);
  if (address_in(name) == std::string::npos) return name;
  if (const auto known = objects_.find(name); known != objects_.end()) return known->second.name;
  return in_block(address_of(name)).value_or(name);
}

std::string ObjectNames::renamed(const std::string& text) const {
  static const std::regex kAddress(R"(\b(?:heap|local)@[0-9a-f]+)");
  std::string result;
  size_t from = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), kAddress), end; at != end; ++at) {
    const std::string name = at->str();
    const auto known = objects_.find(name);
    result += text.substr(from, static_cast<size_t>(at->position()) - from);
    result += known != objects_.end() ? known->second.name : in_block(address_of(name)).value_or(name);
    from = static_cast<size_t>(at->position()) + name.size();
  }
  return result + text.substr(from);
}

}  // namespace slalom
