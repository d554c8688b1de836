#include "kernel_store/kernel_places.h"

#include <algorithm>

#include "kernel_store/debian_mirror.h"

namespace slalom::vm {
namespace {

// Packages that mirrors no longer have are moved here.
constexpr const char* kArchive = "http://archive.debian.org/debian";
constexpr const char* kSecurityArchive = "http://archive.debian.org/debian-security";

struct Suite {
  const char* name;
  // What the name of the package that depends on the newest kernel begins with; nullptr if the suite has only
  // builds of another release.
  const char* newest = "linux-image-";
};

struct Recipe {
  const char* version;
  std::vector<Suite> suites;  // Security suites have the newest build and the shortest list.
};

const Recipe& recipe_of(const KernelName& name) {
  static const std::vector<Recipe> all = {
      {"5.10", {{"bullseye-security"}, {"bullseye"}}},
      {"6.1", {{"bookworm-security"}, {"bookworm"}, {"bullseye-security", nullptr}}},
      {"6.12",
       {{"bookworm-security", "linux-image-6.12-"}, {"bookworm-backports"}, {"trixie-security"}, {"trixie"}}},
      {"sid", {{"sid"}}},
  };
  return *std::ranges::find_if(all, [&](const Recipe& one) { return one.version == name.version; });
}

std::string package_suffix(const std::string& flavour) {
  return flavour == "amd64" ? flavour : flavour + "-amd64";
}

std::vector<std::string> mirrors_of(std::string_view suite, const FetchOptions& options) {
  if (!options.mirror.empty()) return {options.mirror};
  const bool security = suite.ends_with("-security");
  const DebianMirrors mirrors = configured_mirrors(options.apt_configuration);
  std::vector<std::string> uris = security ? mirrors.security : mirrors.main;
  if (suite != "sid")
    uris.push_back(security ? kSecurityArchive : kArchive);  // sid is never moved to the archive
  return uris;
}

}  // namespace

std::vector<std::vector<KernelPlace>> suites_of(const KernelName& name, const FetchOptions& options) {
  std::vector<std::vector<KernelPlace>> suites;
  for (const Suite& suite : recipe_of(name).suites) {
    std::vector<KernelPlace>& places = suites.emplace_back();
    for (const std::string& uri : mirrors_of(suite.name, options))
      places.push_back(
          {.source = {.uri = uri,
                      .suite = suite.name,
                      .trusted = options.trust == FetchOptions::Trust::Anyone,
                      .keyring = options.keyring},
           .newest = suite.newest == nullptr ? "" : suite.newest + package_suffix(name.flavour)});
  }
  return suites;
}

std::vector<KernelPlace> places_of(const KernelName& name, const FetchOptions& options) {
  // The archive comes after the mirrors of all suites.
  std::vector<KernelPlace> places, archive;
  for (const std::vector<KernelPlace>& suite : suites_of(name, options)) {
    for (const KernelPlace& place : suite) {
      if (name.build.empty() && place.newest.empty()) continue;
      const bool old = place.source.uri == kArchive || place.source.uri == kSecurityArchive;
      (old ? archive : places).push_back(place);
    }
  }
  places.insert(places.end(), archive.begin(), archive.end());
  return places;
}

std::string version_prefix(const KernelName& name) {
  return name.version == "sid" ? "" : name.version + ".";
}

}  // namespace slalom::vm
