// Which of a program's memory accesses slalom sees, depending on how its parts were built.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "process/launch/program.h"
#include "process/names/program_names.h"

namespace slalom {
namespace {

bool is_elf(std::span<const uint8_t> file) {
  constexpr std::string_view kMagic =
      "\x7f"
      "ELF";
  return file.size() > kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), file.begin());
}

// Returns whether the file is a library of the language or of slalom. Such libraries lock the data that they
// share between threads, and slalom sees the accesses that the program makes through them (memcpy and the
// like).
bool is_runtime(const std::string& file) {
  for (const char* name :
       {"ld-linux", "libc.", "libc-", "libm.", "libm-", "libmvec", "libstdc++", "libgcc_s", "libpthread",
        "libdl.", "libdl-", "librt.", "librt-", "libgomp", "libatomic", "libtsan", "libslalom"})
    if (file.starts_with(name)) return true;
  return false;
}

}  // namespace

// Returns the files of an instrumented module that were compiled without the option. gcc writes its options
// into the debug information. If no file there has the option, nothing is known.
std::vector<std::string> ProgramNames::unseen_units(const Module& module) const {
  std::vector<std::string> unseen;
  const DebugInfo* debug = debug_of(module.where.begin);
  if (debug == nullptr) return unseen;
  bool known = false;
  for (const CompiledUnit& unit : debug->units()) {
    const bool seen = unit.producer.find("-fsanitize=thread") != std::string::npos;
    known = known || seen;
    // A piece of the sanitizer is linked into every program that is built with it.
    if (unit.file.find("/libsanitizer/") != std::string::npos) continue;
    if (!seen && !unit.assembler) unseen.push_back(std::filesystem::path(unit.file).filename().string());
  }
  if (!known) unseen.clear();
  return unseen;
}

Sight ProgramNames::sight() const {
  const std::lock_guard lock(mutex_);
  Sight sight;
  bool any = false;
  for (const Module& module : modules_) {
    if (module.where.ours) continue;
    const std::string file = std::filesystem::path(module.where.path).filename().string();
    if (!module.where.user && is_runtime(file)) continue;
    const Result<std::vector<uint8_t>> contents = read_file(module.where.path);
    if (!contents.ok() || !is_elf(*contents)) continue;
    const bool instrumented = is_instrumented(*contents);
    any = any || (instrumented && module.where.user);
    if (!module.where.user) {
      if (!instrumented) sight.libraries.push_back(file);
    } else if (!instrumented) {
      sight.unseen.push_back(file);
    } else {
      const std::vector<std::string> units = unseen_units(module);
      sight.unseen.insert(sight.unseen.end(), units.begin(), units.end());
    }
  }
  for (std::vector<std::string>* all : {&sight.unseen, &sight.libraries}) {
    std::ranges::sort(*all);
    all->erase(std::unique(all->begin(), all->end()), all->end());
  }
  sight.extent = !any                   ? Sight::Extent::Nothing
                 : sight.unseen.empty() ? Sight::Extent::Everything
                                        : Sight::Extent::Parts;
  return sight;
}

}  // namespace slalom
