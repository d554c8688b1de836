#include "inputs/system_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace slalom {
namespace {

struct Named {
  std::string_view name;
  int64_t value;
};

constexpr Named kCalls[] = {
#include "inputs/tables/calls.inc"
};
constexpr Named kConstants[] = {
#include "inputs/tables/constants.inc"
};
constexpr Named kErrors[] = {
#include "inputs/tables/errors.inc"
};

// Returns the number of letters to change, add or leave out.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string similar(std::string_view name, std::span<const Named> table) {
  std::vector<std::string_view> names;
  for (const Named& each : table) names.push_back(each.name);
  return similar_names(name, names);
}

}  // namespace

std::optional<uint32_t> system_call_number(std::string_view name) {
  for (const Named& call : kCalls)
    if (call.name == name) return static_cast<uint32_t>(call.value);
  return std::nullopt;
}

std::string_view system_call_name(uint32_t number) {
  for (const Named& call : kCalls)
    if (call.value == number) return call.name;
  return {};
}

std::optional<int64_t> linux_constant(std::string_view name) {
  const auto found =
      std::lower_bound(std::begin(kConstants), std::end(kConstants), name,
                       [](const Named& each, std::string_view key) { return each.name < key; });
  if (found == std::end(kConstants) || found->name != name) return std::nullopt;
  return found->value;
}

std::string similar_names(std::string_view name, std::span<const std::string_view> names) {
  if (name.size() > 40) return "";
  constexpr size_t kMost = 3;
  std::vector<std::pair<size_t, std::string_view>> found;
  for (const std::string_view each : names) {
    const size_t far = distance(name, each);
    if (far <= std::min<size_t>(2, name.size() / 2)) found.emplace_back(far, each);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.empty()) return "";
  std::string list;
  for (size_t i = 0; i < std::min(found.size(), kMost); ++i)
    list += fmt::format("{}{}", i == 0 ? "" : ", ", found[i].second);
  return fmt::format(" (did you mean {}?)", list);
}

std::string similar_system_calls(std::string_view name) {
  return similar(name, kCalls);
}
std::string similar_constants(std::string_view name) {
  return similar(name, kConstants);
}

std::string describe_result(int64_t value) {
  if (value < 0 && value >= -4095) {
    for (const Named& each : kErrors)
      if (each.value == -value) return fmt::format("-{}", each.name);
    return fmt::format("{}", value);
  }
  // Sizes and descriptors are small. Other results are addresses.
  return value < 0 || value >= int64_t{1} << 32 ? fmt::format("{:#x}", static_cast<uint64_t>(value))
                                                : fmt::format("{}", value);
}

}  // namespace slalom
