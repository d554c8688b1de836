#include "kernel_store/kernel_builds.h"

#include <algorithm>

#include "base/temporary_folder.h"
#include "kernel_store/kernel_places.h"

namespace slalom::vm {
namespace {

constexpr std::string_view kImage = "linux-image-";

// Returns the flavour of "linux-image-6.1.0-9-rt-amd64"; empty if the package is something else, such as
// -dbg.
std::string flavour_of(std::string_view package) {
  if (!package.starts_with(kImage) || !package.ends_with("-amd64")) return {};
  package.remove_suffix(std::string_view("-amd64").size());
  for (const std::string& flavour : kernel_flavours())
    if (flavour != "amd64" && package.ends_with("-" + flavour)) return flavour;
  return "amd64";
}

// Meta-packages depend on the image, which has another name for each build.
bool is_meta_package(const Stanza& stanza) {
  const std::string depends = stanza.field("Depends");
  return depends.starts_with(kImage) || depends.find(fmt::format(" {}", kImage)) != std::string::npos;
}

}  // namespace

Result<std::vector<Stanza>> images_in(const AptRoot& apt, const KernelName& name) {
  TRY_ASSIGN(std::vector<std::string> packages, apt.packages(std::string(kImage)));
  std::erase_if(packages, [&](const std::string& package) { return flavour_of(package) != name.flavour; });
  TRY_ASSIGN(std::vector<Stanza> images, apt.show(packages));
  std::erase_if(images, [&](const Stanza& stanza) {
    return !stanza.field("Version").starts_with(version_prefix(name)) || is_meta_package(stanza);
  });
  std::ranges::stable_sort(images, [](const Stanza& a, const Stanza& b) {
    return is_older_build(b.field("Version"), a.field("Version"));
  });
  return images;
}

Result<std::vector<KernelBuild>> available_builds(const KernelName& name, const FetchOptions& options) {
  TRY_ASSIGN(const TemporaryFolder scratch, TemporaryFolder::make("builds"));
  TRY_ASSIGN(const AptRoot apt, AptRoot::make(scratch.path()));
  std::vector<KernelBuild> builds;
  std::string failures;
  bool some = false;
  for (const std::vector<KernelPlace>& mirrors : suites_of(name, options)) {
    for (const KernelPlace& place : mirrors) {
      options.progress(fmt::format("looking into {} of {}", place.source.suite, place.source.uri));
      if (const Result<void> list = apt.update(place.source); !list.ok()) {
        failures +=
            fmt::format("\n  {} at {}: {}", place.source.suite, place.source.uri, list.error().message);
        continue;
      }
      some = true;
      TRY_ASSIGN(const std::vector<Stanza> images, images_in(apt, name));
      for (const Stanza& image : images) {
        KernelName build = name.without_build();
        build.build = image.field("Version");
        if (std::ranges::find(builds, build, &KernelBuild::name) == builds.end())
          builds.push_back(
              {build, image.field("Package").substr(kImage.size()), place.source.suite, place.source.uri});
      }
      break;
    }
  }
  if (!some)
    return error("the mirrors' lists cannot be read:{}\nCheck the network (and http_proxy)", failures);
  if (!failures.empty()) options.progress("not every list could be read:" + failures);
  std::ranges::stable_sort(builds, [](const KernelBuild& a, const KernelBuild& b) {
    return is_older_build(b.name.build, a.name.build);
  });
  return builds;
}

}  // namespace slalom::vm
