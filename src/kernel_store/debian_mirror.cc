#include "kernel_store/debian_mirror.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "kernel_store/control_file.h"

namespace slalom::vm {
namespace {

constexpr std::array<std::string_view, 12> kSuites = {
    "bullseye", "bookworm", "trixie",       "forky",  "duke",      "sid",
    "unstable", "testing",  "oldoldstable", "stable", "oldstable", "experimental"};

bool is_debian_suite(std::string_view suite, bool& security) {
  security = false;
  std::string_view release = suite;
  if (const size_t dash = suite.find('-'); dash != std::string_view::npos) {
    const std::string_view pocket = suite.substr(dash);
    security = pocket == "-security";
    if (!security && pocket != "-updates" && pocket != "-backports" && pocket != "-proposed-updates")
      return false;
    release = suite.substr(0, dash);
  }
  return std::find(kSuites.begin(), kSuites.end(), release) != kSuites.end();
}

void add_source(const std::string& uri, const std::vector<std::string>& suites,
                const std::vector<std::string>& components, DebianMirrors& mirrors) {
  if (uri.starts_with("cdrom:") || uri.find("://") == std::string::npos) {
    if (!uri.starts_with("file:") && !uri.starts_with("copy:")) return;
  }
  if (std::find(components.begin(), components.end(), "main") == components.end()) return;
  for (const std::string& suite : suites) {
    bool security = false;
    if (!is_debian_suite(suite, security)) continue;
    std::vector<std::string>& list = security ? mirrors.security : mirrors.main;
    if (std::find(list.begin(), list.end(), uri) == list.end()) list.push_back(uri);
  }
}

// Other repositories use the names of Debian's suites, too. By custom, URIs of Debian mirrors end in /debian.
void likeliest_first(std::vector<std::string>& uris) {
  std::stable_partition(uris.begin(), uris.end(), [](std::string_view uri) {
    while (uri.ends_with('/')) uri.remove_suffix(1);
    return uri.ends_with("/debian") || uri.ends_with("/debian-security");
  });
}

void add_last(std::vector<std::string>& uris, const std::string& uri) {
  if (std::find(uris.begin(), uris.end(), uri) == uris.end()) uris.push_back(uri);
}

}  // namespace

void add_one_line_sources(std::string_view text, DebianMirrors& mirrors) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, std::min(end, text.find('#'))));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const size_t open = line.find('['); open != std::string::npos) {
      const size_t close = line.find(']', open);
      if (close == std::string::npos) continue;
      line.erase(open, close - open + 1);
    }
    const std::vector<std::string> words = split_words(line);
    if (words.size() < 4 || words[0] != "deb") continue;
    add_source(words[1], {words[2]}, {words.begin() + 3, words.end()}, mirrors);
  }
}

void add_deb822_sources(std::string_view text, DebianMirrors& mirrors) {
  for (const Stanza& stanza : parse_control(text)) {
    const std::vector<std::string> types = split_words(stanza.field("Types"));
    if (std::find(types.begin(), types.end(), "deb") == types.end()) continue;
    if (const std::string enabled = stanza.field("Enabled"); enabled == "no" || enabled == "false") continue;
    for (const std::string& uri : split_words(stanza.field("URIs")))
      add_source(uri, split_words(stanza.field("Suites")), split_words(stanza.field("Components")), mirrors);
  }
}

DebianMirrors configured_mirrors(const std::filesystem::path& directory) {
  DebianMirrors mirrors;
  std::vector<std::filesystem::path> files = {directory / "sources.list"};
  std::error_code trouble;
  std::vector<std::filesystem::path> parts;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "sources.list.d", trouble))
    parts.push_back(entry.path());
  std::sort(parts.begin(), parts.end());
  files.insert(files.end(), parts.begin(), parts.end());
  for (const std::filesystem::path& path : files) {
    const Result<std::vector<uint8_t>> bytes = read_file(path);
    if (!bytes.ok()) continue;
    const std::string text(bytes->begin(), bytes->end());
    if (path.extension() == ".list")
      add_one_line_sources(text, mirrors);
    else if (path.extension() == ".sources")
      add_deb822_sources(text, mirrors);
  }
  likeliest_first(mirrors.main);
  likeliest_first(mirrors.security);
  add_last(mirrors.main, "http://deb.debian.org/debian");
  add_last(mirrors.security, "http://security.debian.org/debian-security");
  return mirrors;
}

}  // namespace slalom::vm
