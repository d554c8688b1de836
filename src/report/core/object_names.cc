#include "report/core/object_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>

namespace slalom {
namespace {

// Returns where the address begins in a name like "heap@55555576a2c0"; npos if the name is not of this form.
size_t address_in(const std::string& name) {
  for (const std::string_view bare : {"heap@", "local@"})
    if (name.starts_with(bare)) return bare.size();
  return std::string::npos;
}

uint64_t address_of(const std::string& name) {
  return std::strtoull(name.c_str() + address_in(name), nullptr, 16);
}

// Returns the kind of object that the operation implies; empty if it implies none.
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

// Returns whether the text contains the name as a whole word: "node#12" does not mention "node#1".
bool mentions(const std::string& text, const std::string& name) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '.' || text[at - 1] == '>')) continue;
    const bool goes_on = end < text.size() &&
                         (is_word(text[end]) ||
                          (text[end] == '.' && end + 1 < text.size() && std::isdigit(text[end + 1]) != 0));
    if (!goes_on) return true;
  }
  return false;
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
    if (match[2] == "," && source.find("scoped_lock") != std::string::npos)
      found.insert("");  // several locks
  });
  each(kMethod, [&](const std::smatch& match) {
    if (!of_mutex || match[2].str().find("wait") == std::string::npos) found.insert(without_this(match[1]));
  });
  return found.size() == 1 ? *found.begin() : "";
}

ObjectNames::ObjectNames(const TraceLog& log, const Names& names) : names_(names) {
  BlockReader blocks(*this);
  log.replay_into(blocks);
  Reader reader(*this);
  log.replay_into(reader);
}

void ObjectNames::BlockReader::on_event(const Event& event) {
  if (event.op == OpKind::Alloc) names_.add_block(event);
  if (event.op != OpKind::Free || event.value <= 0 || !freed_.insert(event.object).second) return;
  frees_.push_back(event);
  frees_.back().text = {};
}

// Adds blocks that were allocated before main(): only the events that free them are in the log.
void ObjectNames::BlockReader::on_end(const Outcome&) {
  for (const Event& event : frees_)
    if (names_.block_at(event.object.raw) == nullptr && !names_.blocks_.contains(event.object.raw))
      names_.add_block(event);
}

void ObjectNames::Reader::on_accesses(std::span<const Access> accesses, const BatchHeader&) {
  for (const Access& access : accesses)
    if (accessed_.insert(access.address()).second) names_.note(access.address(), access.op(), access.pc());
}

void ObjectNames::Reader::on_event(const Event& event) {
  names_.note(event.object, event.op, event.pc);
}

void ObjectNames::Reader::on_end(const Outcome& outcome) {
  if (const auto* deadlock = std::get_if<Deadlocked>(&outcome))
    for (const auto& waiting : deadlock->waiting) names_.note(waiting.object, waiting.op, waiting.pc);
  names_.name_locals();
  names_.name_others();
}

// Gives each local variable the shortest name that no other variable has.
void ObjectNames::name_locals() {
  using Words = std::string (*)(const ObjectNames&, const Local&);
  constexpr Words kWords[] = {
      [](const ObjectNames&, const Local&) { return std::string(); },
      [](const ObjectNames&, const Local& local) {
        return " in " + (local.function == "operator()" ? "a lambda" : local.function);
      },
      [](const ObjectNames& own, const Local& local) { return " in " + own.agent(local.agent); },
  };
  std::vector<Object*> left;
  for (const std::string& key : order_)
    if (Object& object = objects_.at(key); object.local) left.push_back(&object);
  std::set<std::string> taken = others_;
  for (const Words words : kWords) {
    std::map<std::string, uint32_t> same;
    for (const Object* object : left) ++same[object->local->name + words(*this, *object->local)];
    std::vector<Object*> next;
    for (Object* object : left) {
      const std::string suffix = words(*this, *object->local);
      const std::string name = object->local->name + suffix;
      if (same[name] > 1 || taken.contains(name)) {
        next.push_back(object);
        continue;
      }
      object->name = name;
      object->shown_variable = object->local->variable + suffix;
    }
    left = std::move(next);
  }
  for (Object* object : left) object->local.reset();
}

void ObjectNames::name_others() {
  std::map<std::string, uint32_t> same;
  for (const std::string& key : order_)
    if (const Object& object = objects_.at(key); !object.expression.empty()) ++same[object.expression];
  std::map<std::string, uint32_t> used;
  for (const std::string& key : order_) {
    Object& object = objects_.at(key);
    if (!object.name.empty()) continue;
    const auto* block = block_at(address_of(key));
    const bool is_known = object.pointed || !object.expression.empty();
    if (block != nullptr && (block->second.is_typed() || !is_known)) {
      object.name = in_block(address_of(key)).value_or(block->second.name);
    } else if (object.pointed) {
      object.name = name_pointed(*object.pointed);
    } else if (!object.expression.empty()) {
      const bool alone = same[object.expression] == 1;
      object.name =
          alone ? object.expression : fmt::format("{}#{}", object.expression, ++used[object.expression]);
    } else {
      const std::string kind = object.kind.empty() ? key.substr(0, key.find('@')) : object.kind;
      object.name = fmt::format("{}#{}", kind, ++used[kind]);
    }
  }
}

std::string ObjectNames::name_pointed(const Pointed& pointed) {
  const auto [known, added] = pointed_.try_emplace(pointed.begin);
  if (added) {
    const auto is_block = [&](const std::string& name) {
      return std::ranges::any_of(blocks_, [&](const auto& block) { return block.second.name == name; });
    };
    std::string name;
    do {
      name = fmt::format("{}#{}", pointed.type, ++block_count_[{AgentId{}, pointed.type}]);
    } while (is_block(name));
    known->second = {
        NamedObject::Kind::Object, name, pointed.begin, pointed.size, pointed.type, "", {}, {}, false};
  }
  return known->second.name + pointed.part;
}

void ObjectNames::add_block(const Event& event) {
  const uint64_t begin = event.object.raw, size = static_cast<uint64_t>(std::max<int64_t>(event.value, 1)),
                 end = begin + size;
  if (address_in(names_.object(event.object)) == std::string::npos) return;
  Block words = names_.block(event.pc, size);
  if (words.name.empty()) words.name = "block";
  // "1.2" is the second thread of the main thread's child; the main thread itself has no number.
  const std::string path = event.agent.path();
  const size_t dot = path.find('.');
  const std::string whose = dot == std::string::npos ? "" : path.substr(dot + 1) + ".";
  const uint32_t number = ++block_count_[{event.agent, words.name}];
  const bool is_freed = event.op == OpKind::Free;
  KnownBlock block{
      size, fmt::format("{}#{}{}", words.name, whose, number), words.type, event.agent, event.pc, is_freed};
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
  if (address_in(key) == std::string::npos) {
    others_.insert(key);
    return;
  }
  const auto [known, added] = objects_.try_emplace(key);
  Object& object = known->second;
  if (added) {
    order_.push_back(key);
    object.local = names_.local(id);
    object.pointed = names_.pointed(id);
  }
  if (object.kind.empty()) object.kind = kind_of(op);
  if (object.expression.empty() && !kind_of(op).empty())
    object.expression = lock_expression(names_.source(pc), op);
}

const std::pair<const uint64_t, ObjectNames::KnownBlock>* ObjectNames::block_at(uint64_t address) const {
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return nullptr;
  --block;
  return address - block->first < block->second.size && !block->second.name.empty() ? &*block : nullptr;
}

std::optional<std::string> ObjectNames::in_block(uint64_t address) const {
  const auto* block = block_at(address);
  if (block == nullptr) return std::nullopt;
  const auto& [begin, known] = *block;
  return known.name + names_.block_part(known.place, known.size, address - begin);
}

std::string ObjectNames::by_address(const std::string& name, bool whole) const {
  if (whole) {
    const uint64_t address = address_of(name);
    if (const auto* block = block_at(address);
        block != nullptr && block->first == address && block->second.is_typed())
      return block->second.name;
    if (const auto object = pointed_.find(address); object != pointed_.end()) return object->second.name;
  }
  if (const auto known = objects_.find(name); known != objects_.end()) return known->second.name;
  return in_block(address_of(name)).value_or(name);
}

std::string ObjectNames::object(ObjectId id) const {
  std::string name = names_.object(id);
  return address_in(name) == std::string::npos ? name : by_address(name, false);
}

std::string ObjectNames::whole(ObjectId id) const {
  std::string name = names_.object(id);
  return address_in(name) == std::string::npos ? name : by_address(name, true);
}

std::string ObjectNames::renamed(const std::string& text, bool whole) const {
  static const std::regex kAddress(R"(\b(?:heap|local)@[0-9a-f]+)");
  std::string result;
  size_t from = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), kAddress), end; at != end; ++at) {
    const std::string name = at->str();
    result += text.substr(from, static_cast<size_t>(at->position()) - from) + by_address(name, whole);
    from = static_cast<size_t>(at->position()) + name.size();
  }
  return result + text.substr(from);
}

std::vector<NamedObject> ObjectNames::explained(const std::vector<std::string>& texts) const {
  std::map<std::string, NamedObject> all;
  for (const auto& [begin, block] : blocks_)
    if (!block.name.empty())
      all[block.name] = {NamedObject::Kind::Block,
                         block.name,
                         begin,
                         block.size,
                         block.type,
                         "",
                         block.agent,
                         block.place,
                         block.is_freed};
  for (const auto& [begin, object] : pointed_) all[object.name] = object;
  for (const auto& [key, object] : objects_)
    if (object.local)
      all.try_emplace(object.shown_variable, NamedObject{NamedObject::Kind::Local,
                                                         object.shown_variable,
                                                         address_of(key),
                                                         0,
                                                         "",
                                                         object.local->function,
                                                         object.local->agent,
                                                         {}});
  std::vector<NamedObject> found;
  for (auto& [name, object] : all)
    if (std::ranges::any_of(texts,
                            [&, &name = name](const std::string& text) { return mentions(text, name); }))
      found.push_back(std::move(object));
  return found;
}

}  // namespace slalom
