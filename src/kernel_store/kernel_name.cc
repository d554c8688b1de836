#include "kernel_store/kernel_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace slalom::vm {
namespace {

constexpr std::string_view kDebian = "debian:";
constexpr std::array<std::string_view, 4> kVersions = {"5.10", "6.1", "6.12", "sid"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Debian Policy 5.6.12: "~" sorts before everything, even the end of a part; letters sort before other
// characters.
int rank_in_version(char c) {
  if (c == '~') return -1;
  if (is_digit(c)) return 0;
  return std::isalpha(static_cast<unsigned char>(c)) != 0 ? c : c + 256;
}

// Returns the digits at `at`, without leading zeros, and moves `at` behind them.
std::string_view take_number(std::string_view text, size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(begin, at - begin);
}

// Negative if `a` is older, positive if it is newer.
int compare_part(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    while ((i < a.size() && !is_digit(a[i])) || (j < b.size() && !is_digit(b[j]))) {
      const int left = i < a.size() ? rank_in_version(a[i]) : 0;
      const int right = j < b.size() ? rank_in_version(b[j]) : 0;
      if (left != right) return left - right;
      ++i, ++j;
    }
    const std::string_view left = take_number(a, i), right = take_number(b, j);
    if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
    if (const int order = left.compare(right); order != 0) return order;
  }
  return 0;
}

}  // namespace

const std::vector<std::string>& kernel_flavours() {
  static const std::vector<std::string> flavours = {"cloud", "amd64", "rt"};
  return flavours;
}

const std::vector<std::string>& known_kernels() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const std::string_view version : kVersions) all.push_back(fmt::format("{}{}", kDebian, version));
    return all;
  }();
  return names;
}

std::string KernelName::text() const {
  std::string text = fmt::format("{}{}", kDebian, version);
  if (flavour != kernel_flavours().front()) text += ":" + flavour;
  if (!build.empty()) text += "=" + build;
  return text;
}

bool looks_like_kernel_name(std::string_view text) {
  // A file whose name begins like this must be given with a path.
  return text.starts_with(kDebian) && text.find('/') == std::string_view::npos;
}

Result<KernelName> parse_kernel_name(std::string_view text) {
  const auto unknown = [&] {
    return error(
        "there is no kernel called \"{}\"; slalom knows {}, each also with a flavour ({}:rt) or a build "
        "({}=5.10.218-1)",
        text, fmt::join(known_kernels(), ", "), known_kernels()[1], known_kernels()[0]);
  };
  if (!looks_like_kernel_name(text)) return unknown();
  std::string_view rest = text.substr(kDebian.size());
  KernelName name;
  const size_t equals = rest.find('=');
  if (equals != std::string_view::npos) {
    name.build = rest.substr(equals + 1);
    rest = rest.substr(0, equals);
  }
  const size_t colon = rest.find(':');
  if (colon != std::string_view::npos) {
    name.flavour = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  }
  name.version = rest;
  if (std::ranges::find(kVersions, rest) == kVersions.end()) return unknown();
  // As packages spell it: linux-image-rt-amd64.
  if (name.flavour == "cloud-amd64" || name.flavour == "rt-amd64")
    name.flavour.resize(name.flavour.size() - std::string_view("-amd64").size());
  if (std::ranges::find(kernel_flavours(), name.flavour) == kernel_flavours().end())
    return error("\"{}\": Debian has no flavour \"{}\"; there are {} (the default is {})", text, name.flavour,
                 fmt::join(kernel_flavours(), ", "), kernel_flavours().front());
  if (equals == std::string_view::npos) return name;
  const bool plain = std::ranges::all_of(name.build, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '+' || c == '~';
  });
  const bool of_this = name.version == "sid" || name.build.starts_with(name.version + ".");
  if (!plain || !of_this || name.build.empty() || !is_digit(name.build.front()))
    return error(
        "\"{}\": \"{}\" is no build of {}; slalom kernel list {} --available shows those that there are",
        text, name.build, name.without_build().text(), name.without_build().text());
  return name;
}

bool is_older_build(std::string_view a, std::string_view b) {
  const auto split = [](std::string_view text) {
    const size_t dash = text.rfind('-');
    return dash == std::string_view::npos ? std::pair(text, std::string_view())
                                          : std::pair(text.substr(0, dash), text.substr(dash + 1));
  };
  const auto [upstream_a, revision_a] = split(a);
  const auto [upstream_b, revision_b] = split(b);
  const int order = compare_part(upstream_a, upstream_b);
  return order != 0 ? order < 0 : compare_part(revision_a, revision_b) < 0;
}

}  // namespace slalom::vm
