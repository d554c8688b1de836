// Which Debian mirrors this machine is configured with: reads apt's sources, in both forms, and changes
// nothing.
//
// A list of guesses, best first: whether a mirror really is Debian's is decided by its signatures.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace slalom::vm {

struct DebianMirrors {
  std::vector<std::string> main;      // have suites such as bookworm and sid
  std::vector<std::string> security;  // have suites such as bookworm-security
  bool operator==(const DebianMirrors&) const = default;
};

// Adds what one file of sources names.
void add_one_line_sources(std::string_view text, DebianMirrors& mirrors);  // sources.list, *.list
void add_deb822_sources(std::string_view text, DebianMirrors& mirrors);    // *.sources

// All sources below `directory` (/etc/apt), then Debian's own servers, which always come last.
DebianMirrors configured_mirrors(const std::filesystem::path& directory);

}  // namespace slalom::vm
