#include "kernel_store/apt_root.h"

#include <algorithm>
#include <array>

#include "base/child.h"
#include "base/file.h"

namespace slalom::vm {
namespace {

Result<ChildOutput> run_apt(const std::filesystem::path& root, const std::string& program,
                            std::vector<std::string> arguments) {
  return run_child({.program = program,
                    .arguments = std::move(arguments),
                    .directory = root / "debs",
                    .environment = {{"APT_CONFIG", (root / "apt.conf").string()}, {"LC_ALL", "C.UTF-8"}}},
                   "apt");
}

// Returns the host's network settings (proxies, retries) for the private apt. Hooks and other settings are
// left out, since they would affect the host's own files.
std::string network_settings() {
  const Result<ChildOutput> dump = run_child({.program = "apt-config", .arguments = {"dump"}}, "apt");
  if (!dump.ok() || dump->status != 0) return {};
  constexpr std::array<std::string_view, 6> kept = {
      "Acquire::http::",     "Acquire::https::",    "Acquire::Retries ",
      "Acquire::ForceIPv4 ", "Acquire::ForceIPv6 ", "Acquire::socks::"};
  std::string settings;
  std::string_view text = dump->output;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (const std::string_view prefix : kept)
      if (line.starts_with(prefix)) settings += std::string(line) + "\n";
  }
  return settings;
}

// Returns apt's own message: its first error, otherwise its first warning.
std::string reason(const ChildOutput& done) {
  const std::string all = done.errors + done.output;
  for (const std::string_view mark : {"E: Failed to fetch", "W: Failed to fetch", "E: ", "Err:", "W: "}) {
    const size_t begin = all.starts_with(mark) ? 0 : all.find("\n" + std::string(mark));
    if (begin == std::string::npos) continue;
    const size_t start = begin + (begin == 0 && all.starts_with(mark) ? 0 : 1) + mark.size();
    std::string line = all.substr(start, all.find('\n', start) - start);
    while (line.starts_with(' ')) line.erase(0, 1);
    return line;
  }
  return fmt::format("apt ended with status {}", done.status);
}

Error download_trouble(const std::string& package, const std::string& version, const std::string& why) {
  const auto says = [&](std::string_view text) { return why.find(text) != std::string::npos; };
  if (says("Hash Sum mismatch") || says("unexpected size"))
    return error("{} {} is not the file that the mirror's list describes, so it was thrown away: {}", package,
                 version, why);
  if (says("404") || says("File not found") || says("No such file"))
    return error("{} {} is in the mirror's list, but no longer on the mirror: {}", package, version, why);
  return error("the download of {} {} broke off: {}; try again", package, version, why);
}

std::string debian_keyring() {
  for (const char* path :
       {"/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"}) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

}  // namespace

Result<AptRoot> AptRoot::make(const std::filesystem::path& directory) {
  std::error_code trouble;
  for (const char* part : {"debs", "lists/partial", "cache/archives/partial", "state", "empty"}) {
    std::filesystem::create_directories(directory / part, trouble);
    if (trouble)
      return error("cannot make {}: {}; check the permissions, or set SLALOM_CACHE to another directory",
                   (directory / part).string(), trouble.message());
  }
  TRY(write_file(directory / "status", std::string_view()));
  const std::string at = directory.string();
  if (at.find_first_of("\"\n;{}") != std::string::npos)
    return error("apt cannot work in {}: set SLALOM_CACHE to a directory with a plainer name", at);
  const std::string configuration = fmt::format(
      "Dir::Etc::main \"/dev/null\";\n"
      "Dir::Etc::parts \"{0}/empty\";\n"
      "Dir::Etc::sourcelist \"{0}/source.list\";\n"
      "Dir::Etc::sourceparts \"{0}/empty\";\n"
      "Dir::Etc::preferences \"/dev/null\";\n"
      "Dir::Etc::preferencesparts \"{0}/empty\";\n"
      "Dir::State \"{0}/state\";\n"
      "Dir::State::lists \"{0}/lists\";\n"
      "Dir::State::status \"{0}/status\";\n"
      "Dir::Cache \"{0}/cache\";\n"
      "Dir::Log \"{0}/state\";\n"
      "APT::Architecture \"amd64\";\n"
      "APT::Architectures \"amd64\";\n"
      // As root, apt would otherwise download as another user, who cannot write to root's cache.
      "APT::Sandbox::User \"root\";\n"
      "APT::Update::Error-Mode \"any\";\n"
      // Old releases are not signed again: their lists expire, but their signatures remain valid.
      "Acquire::Check-Valid-Until \"false\";\n"
      "Acquire::Languages \"none\";\n"
      "Acquire::Retries \"2\";\n"
      "{1}",
      at, network_settings());
  TRY(write_file(directory / "apt.conf", configuration));
  return AptRoot(directory);
}

Result<void> AptRoot::update(const AptSource& source) const {
  std::string option = "trusted=yes";
  if (!source.trusted) {
    std::error_code trouble;
    const std::string keys = source.keyring.empty()
                                 ? debian_keyring()
                                 : std::filesystem::absolute(source.keyring, trouble).string();
    if (keys.empty())
      return error("Debian's signatures cannot be checked: install the package debian-archive-keyring");
    if (keys.find_first_of(" \t\n[]#") != std::string::npos)
      return error("apt cannot read the keyring {}: give one with a plainer name", keys);
    option = "signed-by=" + keys;
  }
  if (source.uri.find_first_of(" \t\n[]#") != std::string::npos)
    return error("\"{}\" is no address of a mirror", source.uri);
  TRY(write_file(directory_ / "source.list",
                 fmt::format("deb [{}] {} {} main\n", option, source.uri, source.suite)));
  TRY_ASSIGN(const ChildOutput done, run_apt(directory_, "apt-get", {"-q", "update"}));
  if (done.status != 0) return Error{reason(done)};
  return {};
}

Result<std::vector<Stanza>> AptRoot::show(const std::string& package) const {
  return show(std::vector<std::string>{package});
}

Result<std::vector<Stanza>> AptRoot::show(const std::vector<std::string>& packages) const {
  if (packages.empty()) return std::vector<Stanza>();
  std::vector<std::string> arguments = {"show"};
  arguments.insert(arguments.end(), packages.begin(), packages.end());
  TRY_ASSIGN(const ChildOutput done, run_apt(directory_, "apt-cache", std::move(arguments)));
  if (done.status != 0) return std::vector<Stanza>();
  std::vector<Stanza> stanzas = parse_control(done.output);
  std::erase_if(stanzas, [&](const Stanza& stanza) {
    return std::find(packages.begin(), packages.end(), stanza.field("Package")) == packages.end();
  });
  return stanzas;
}

Result<std::vector<std::string>> AptRoot::packages(const std::string& prefix) const {
  TRY_ASSIGN(const ChildOutput done, run_apt(directory_, "apt-cache", {"pkgnames", prefix}));
  if (done.status != 0) return Error{reason(done)};
  return split_words(done.output);
}

Result<std::filesystem::path> AptRoot::download(const std::string& package,
                                                const std::string& version) const {
  TRY_ASSIGN(const ChildOutput done,
             run_apt(directory_, "apt-get", {"-q", "download", package + "=" + version}));
  if (done.status != 0) return download_trouble(package, version, reason(done));
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "debs")) {
    if (entry.path().filename().string().starts_with(package + "_")) return entry.path();
  }
  return error("apt has not left the package {} where it was told to", package);
}

}  // namespace slalom::vm
