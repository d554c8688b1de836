#include "vm/guests/linux/guest_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "symbols/elf_symbols.h"
#include "symbols/linux_modules.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/guests/linux/marking.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostLines = 200'000;  // that are read of a source file

std::vector<std::string> read_lines(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return lines;
  std::ifstream in(file);
  for (std::string line; lines.size() < kMostLines && std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool belongs(const std::filesystem::path& vmlinux, const GuestKernel& kernel) {
  const std::string id = build_id_of(vmlinux);
  return !id.empty() && kernel.identity == "build-id:" + id;
}

// The vmlinux is the kernel file itself, or lies where Debian's and Fedora's debug packages put it.
Result<std::filesystem::path> find_vmlinux(const GuestKernel& kernel, const std::filesystem::path& given) {
  std::error_code ignored;
  if (!given.empty()) {
    if (!std::filesystem::exists(given, ignored))
      return error("there is no {}: give the vmlinux with debug information", given.string());
    if (!belongs(given, kernel))
      return error("{} is not of this kernel (their build ids differ): give the vmlinux of {}",
                   given.string(), kernel.files.release.empty() ? kernel.files.name : kernel.files.release);
    return given;
  }
  const std::string& release = kernel.files.release;
  std::vector<std::filesystem::path> places = {kernel.files.vmlinuz};
  if (!release.empty()) {
    places.push_back("/usr/lib/debug/boot/vmlinux-" + release);
    places.push_back("/usr/lib/debug/lib/modules/" + release + "/vmlinux");
  }
  const auto found = std::ranges::find_if(places, [&](const auto& place) { return belongs(place, kernel); });
  return found != places.end() ? *found : std::filesystem::path();
}

// The module's name is its file's name in the kernel's spelling.
std::string module_name(const std::filesystem::path& file) {
  std::string name = file.stem().string();
  std::ranges::replace(name, '-', '_');
  return name;
}

// Maps files of slalom's cache to this user's cache. scripts/build-modules makes the example modules name
// them as if the cache were always at one place.
std::filesystem::path in_this_cache(const std::filesystem::path& file) {
  constexpr std::string_view kCache = "/slalom/cache/";
  const std::string name = file.lexically_normal().string();
  const Result<std::filesystem::path> cache = cache_directory();
  return name.starts_with(kCache) && cache.ok() ? *cache / name.substr(kCache.size()) : file;
}

}  // namespace

Result<GuestLines> GuestLines::open(const GuestKernel& kernel, const Sources& sources, Pc& pc) {
  std::vector<DebugFile> files;
  TRY_ASSIGN(const std::filesystem::path vmlinux, find_vmlinux(kernel, sources.vmlinux));
  if (!vmlinux.empty()) files.push_back({.path = vmlinux});
  if (!sources.modules.empty() && kernel.types) {
    CpuMemory memory(pc.cpu(0));
    const auto loaded = read_linux_modules(memory, kernel.symbols, *kernel.types);
    for (const std::filesystem::path& path : sources.modules) {
      const Result<std::vector<uint8_t>> file = read_file(path);
      if (!loaded.ok() || !file.ok()) continue;
      const auto module = std::ranges::find(*loaded, module_name(path), &LinuxModule::name);
      if (module == loaded->end()) continue;
      Result<std::map<std::string, uint64_t>> sections = locate_sections(*file, module->symbols);
      if (sections.ok()) files.push_back({.path = path, .sections = *std::move(sections)});
    }
  }
  TRY_ASSIGN(DebugInfo info, DebugInfo::open(files));
  return GuestLines(std::move(info), std::move(files), sources.folder);
}

std::string GuestLines::at(uint64_t address) const {
  const std::scoped_lock lock(*mutex_);
  const std::optional<SourcePlace> place = info_.at(address);
  if (!place || place->line == 0) return {};
  // For inlined code, name the line of the function that contains it: the reader knows that one.
  const bool inlined = !place->inlined_into.empty();
  // Files of a kernel are named relative to its top. Those of a module may have absolute names from the
  // machine where it was built, so only the file name is shown.
  const std::filesystem::path file(inlined ? place->inlined_into.back().file : place->file);
  std::string text = fmt::format("{}:{}", file.is_absolute() ? file.filename().string() : file.string(),
                                 inlined ? place->inlined_into.back().line : place->line);
  if (inlined) text += " in " + place->function;
  return text;
}

const std::string* GuestLines::source(const SourcePlace& place) const {
  const std::filesystem::path file = in_this_cache(std::filesystem::path(place.folder) / place.file);
  const auto [known, added] = sources_.try_emplace(file);
  if (added) known->second = read_lines(file);
  if (added && known->second.empty() && !folder_.empty())
    known->second = read_lines(folder_ / file.filename());
  const auto line = static_cast<size_t>(place.line);
  return line == 0 || line > known->second.size() ? nullptr : &known->second[line - 1];
}

Names::Marking GuestLines::marking(uint64_t address, bool writes) const {
  const std::scoped_lock lock(*mutex_);
  const auto [known, added] = markings_.try_emplace({address, writes}, Names::Marking::Unknown);
  if (added) known->second = find_marking(address, writes);
  return known->second;
}

Names::Marking GuestLines::find_marking(uint64_t address, bool writes) const {
  const std::optional<SourcePlace> place = info_.at(address);
  if (!place || place->line == 0) return Names::Marking::Unknown;
  Mark mark = Mark::None;
  if (!place->inlined_into.empty()) mark = mark_of_function(place->function);
  for (size_t i = 0; i + 1 < place->inlined_into.size(); ++i)
    mark = mark | mark_of_function(place->inlined_into[i].function);
  const std::string* text = source(*place);
  if (text != nullptr) mark = mark | mark_of_line(*text);
  if (covers(mark, writes)) return Names::Marking::Marked;
  return text != nullptr ? Names::Marking::Plain : Names::Marking::Unknown;
}

}  // namespace slalom::vm
