#include "kernel_store/own_kernel.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/little_endian.h"
#include "kernel_store/decompress.h"

namespace slalom::vm {
namespace {

// From the kernel's Documentation/arch/x86/boot.rst.
constexpr uint64_t kMagicOffset = 0x202;
constexpr uint32_t kHeaderMagic = 0x53726448;
constexpr uint64_t kVersionPointer = 0x20e;  // of a text, counted from 0x200
constexpr uint64_t kMostUnpacked = uint64_t{2} << 30;
constexpr size_t kMostRelease = 128;

std::string first_word(std::span<const uint8_t> text) {
  std::string word;
  for (const uint8_t c : text.first(std::min(text.size(), kMostRelease))) {
    if (c <= ' ' || c >= 0x7f) return word;
    word += static_cast<char>(c);
  }
  return {};  // no release is that long
}

// Returns the word after "Linux version " where it begins with a digit. A kernel has this text in other
// places, too.
std::string release_in_banner(std::span<const uint8_t> image) {
  constexpr std::string_view banner = "Linux version ";
  const std::boyer_moore_horspool_searcher searcher(banner.begin(), banner.end());
  for (auto at = image.begin();;) {
    at = std::search(at, image.end(), searcher);
    if (at == image.end()) return {};
    at += banner.size();
    if (at != image.end() && *at >= '0' && *at <= '9')
      return first_word(image.subspan(static_cast<size_t>(at - image.begin())));
  }
}

bool holds_modules(const std::filesystem::path& directory) {
  std::error_code trouble;
  return std::filesystem::exists(directory / "modules.order", trouble) ||
         std::filesystem::exists(directory / "modules.builtin", trouble) ||
         std::filesystem::is_directory(directory / "kernel", trouble);
}

bool holds_module_files(const std::filesystem::path& directory) {
  std::error_code trouble;
  for (std::filesystem::recursive_directory_iterator each(directory, trouble), end; !trouble && each != end;
       each.increment(trouble))
    if (each->path().filename().string().find(".ko") != std::string::npos) return true;
  return false;
}

}  // namespace

std::string kernel_release(std::span<const uint8_t> file) {
  if (get_le<uint32_t>(file, kMagicOffset) == kHeaderMagic) {
    const uint64_t at = uint64_t{get_le<uint16_t>(file, kVersionPointer).value_or(0)} + 0x200;
    return at == 0x200 || at >= file.size() ? "" : first_word(file.subspan(at));
  }
  if (!can_unpack(compression_of(file))) return release_in_banner(file);
  const Result<std::vector<uint8_t>> unpacked = unpack(file, kMostUnpacked);
  return unpacked.ok() ? release_in_banner(*unpacked) : "";
}

Result<Kernel> with_own_modules(Kernel kernel, const std::filesystem::path& directory) {
  if (!kernel.packages.empty()) {
    if (directory.empty()) return kernel;
    return error("{} comes with modules of its own: leave out {}", kernel.name, directory.string());
  }
  TRY_ASSIGN(const std::vector<uint8_t> file, read_file(kernel.vmlinuz));
  kernel.release = kernel_release(file);
  std::error_code trouble;
  if (!directory.empty()) {
    for (const std::filesystem::path& place :
         {directory / "lib/modules" / kernel.release, directory / kernel.release, directory}) {
      if (!holds_modules(place) && (place != directory || !holds_module_files(place))) continue;
      kernel.modules = place;
      return kernel;
    }
    return error(
        "there are no modules in {}: give a directory like /lib/modules/{}, or the one that make "
        "modules_install INSTALL_MOD_PATH=... has filled",
        directory.string(), kernel.release.empty() ? "RELEASE" : kernel.release);
  }
  const std::filesystem::path beside = std::filesystem::absolute(kernel.vmlinuz, trouble).parent_path();
  // A build tree, from its vmlinux or its arch/x86/boot/bzImage.
  for (const std::filesystem::path& tree : {beside, beside.parent_path().parent_path().parent_path()})
    if (std::filesystem::exists(tree / "modules.order", trouble)) {
      kernel.modules = tree;
      return kernel;
    }
  if (kernel.release.empty()) return kernel;
  for (const std::filesystem::path& root : {beside, beside.parent_path(), std::filesystem::path("/")})
    if (const std::filesystem::path place = root / "lib/modules" / kernel.release; holds_modules(place)) {
      kernel.modules = place;
      break;
    }
  return kernel;
}

}  // namespace slalom::vm
