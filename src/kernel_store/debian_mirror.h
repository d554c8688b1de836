// Finds the Debian mirrors that the host's apt is configured with, in both formats of its sources. It changes
// nothing.
//
// The result is a list of guesses, best first. Signatures decide whether a mirror really is Debian's.
//
// libapt-pkg could read the sources, but apt_root.h says why slalom does without it, and both formats take a
// few lines.
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

// Add the mirrors of one sources file.
void add_one_line_sources(std::string_view text, DebianMirrors& mirrors);  // sources.list, *.list
void add_deb822_sources(std::string_view text, DebianMirrors& mirrors);    // *.sources

// Returns the mirrors of all sources in `directory` (/etc/apt), followed by Debian's own servers.
DebianMirrors configured_mirrors(const std::filesystem::path& directory);

}  // namespace slalom::vm
