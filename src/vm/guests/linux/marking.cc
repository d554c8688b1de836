#include "vm/guests/linux/marking.h"

#include <algorithm>
#include <cctype>

namespace slalom::vm {
namespace {

struct Word {
  std::string_view begins;
  Mark mark;
};

// Compared without leading underscores. The first match counts, so longer names come first.
constexpr Word kWords[] = {
    {"READ_ONCE", Mark::Load},
    {"WRITE_ONCE", Mark::Store},
    {"ACCESS_ONCE", Mark::Both},
    {"data_race", Mark::Both},
    {"smp_load_acquire", Mark::Load},
    {"smp_cond_load", Mark::Load},
    {"smp_store", Mark::Store},
    {"rcu_dereference", Mark::Load},
    {"rcu_access_pointer", Mark::Load},
    {"rcu_assign_pointer", Mark::Store},
    {"RCU_INIT_POINTER", Mark::Store},
    {"rcu_replace_pointer", Mark::Both},
    {"list_add_rcu", Mark::Both},
    {"list_del_rcu", Mark::Both},
    {"hlist_add_", Mark::Both},
    {"atomic_", Mark::Both},
    {"atomic64_", Mark::Both},
    {"arch_atomic", Mark::Both},
    {"raw_atomic", Mark::Both},
    {"refcount_", Mark::Both},
    {"kref_", Mark::Both},
    {"cmpxchg", Mark::Both},
    {"try_cmpxchg", Mark::Both},
    {"arch_cmpxchg", Mark::Both},
    {"arch_try_cmpxchg", Mark::Both},
    {"xchg", Mark::Both},
    {"arch_xchg", Mark::Both},
    {"test_bit", Mark::Both},
    {"set_bit", Mark::Both},
    {"clear_bit", Mark::Both},
    {"change_bit", Mark::Both},
    {"test_and_", Mark::Both},
    {"arch_test_", Mark::Both},
    {"arch_set_bit", Mark::Both},
    {"arch_clear_bit", Mark::Both},
    {"arch_change_bit", Mark::Both},
    {"constant_test_bit", Mark::Both},
    {"variable_test_bit", Mark::Both},
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

Mark mark_of_function(std::string_view name) {
  // For "__set_bit" and the like, the caller must prevent races.
  if (name.starts_with("__") && name.find("_bit") != std::string_view::npos) return Mark::None;
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  const auto found =
      std::ranges::find_if(kWords, [&](const Word& word) { return name.starts_with(word.begins); });
  return found == std::end(kWords) ? Mark::None : found->mark;
}

Mark mark_of_line(std::string_view source) {
  Mark mark = Mark::None;
  source = source.substr(0, source.find("//"));
  for (size_t at = 0; at < source.size();) {
    if (!is_word(source[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < source.size() && is_word(source[end])) ++end;
    size_t next = end;
    while (next < source.size() && source[next] == ' ') ++next;
    if (next < source.size() && source[next] == '(')
      mark = mark | mark_of_function(source.substr(at, end - at));
    at = end;
  }
  return mark;
}

}  // namespace slalom::vm
