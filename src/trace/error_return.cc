#include "trace/error_return.h"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace slalom {
namespace {

constexpr size_t kMaxDifferences = 5;

std::string error_in_words(int32_t error) {
  if (error < 0) return fmt::format("\"{}\"", gai_strerror(error));
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : fmt::format("error {}", error);
}

std::string call_in_words(const ErrorReturn& failed, const Names& names) {
  return fmt::format("{}({}) in {} at {}", failed.call,
                     failed.about.empty() ? "" : fmt::format("\"{}\"", failed.about),
                     names.agent(failed.agent), names.place(failed.pc));
}

// Returns the same call of the same agent, or nullptr if it did not fail.
const ErrorReturn* find(const ErrorLog& log, const ErrorReturn& wanted) {
  const auto key = [](const ErrorReturn& one) { return std::tuple(one.agent, one.ordinal); };
  const auto at = std::ranges::lower_bound(log.returns, key(wanted), {}, key);
  return at != log.returns.end() && key(*at) == key(wanted) && at->call == wanted.call ? &*at : nullptr;
}

}  // namespace

bool fail_alike(const ErrorLog& one, const ErrorLog& other) {
  const auto facts = [](const ErrorReturn& failed) {
    return std::tie(failed.agent, failed.ordinal, failed.call, failed.error);
  };
  return one.left_out == other.left_out && std::ranges::equal(one.returns, other.returns, {}, facts, facts);
}

std::vector<std::string> differences(const ErrorLog& then, const ErrorLog& now, const Names& names) {
  std::vector<std::string> all;
  for (const ErrorReturn& failed : now.returns) {
    const ErrorReturn* before = find(then, failed);
    if (before == nullptr && then.left_out == 0)
      all.push_back(fmt::format("{} fails with {}, which it did not then", call_in_words(failed, names),
                                error_in_words(failed.error)));
    else if (before != nullptr && before->error != failed.error)
      all.push_back(fmt::format("{} fails with {}, then with {}", call_in_words(failed, names),
                                error_in_words(failed.error), error_in_words(before->error)));
  }
  // A call that is not repeated is mostly a consequence of another difference.
  if (all.empty())
    for (const ErrorReturn& failed : then.returns)
      if (find(now, failed) == nullptr && now.left_out == 0)
        all.push_back(fmt::format("{} failed with {} then; now it does not come to that call",
                                  call_in_words(failed, names), error_in_words(failed.error)));
  if (all.size() > kMaxDifferences) {
    const size_t more = all.size() - kMaxDifferences;
    all.resize(kMaxDifferences);
    all.push_back(fmt::format("{} further calls differ", more));
  }
  if (then.left_out > 0)
    all.push_back(fmt::format("{} errors that calls gave then were too many to be kept", then.left_out));
  return all;
}

}  // namespace slalom
