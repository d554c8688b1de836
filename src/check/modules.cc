#include "check/modules.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "check/fiber.h"

namespace slalom::checking {
namespace {

// The address of programs in Linux without address randomisation.
constexpr uint64_t kProgram = 0x555555554000;
constexpr uint64_t kLibraries = 0x7fff00000000 - (uint64_t{64} << 32);
// Stable address of the fibers' stacks. ProgramNames names objects there as it does those on the main stack.
constexpr uint64_t kLocals = 0x7ff000000000;
// The table in which libstdc++ counts the waiting threads of atomic objects other than int, and of
// std::barrier. It also counts the wake-ups.
constexpr char kWaiters[] = "_ZZNSt8__detail18__waiter_pool_base6_S_forEPKvE3__w";
constexpr uint64_t kSpacing = uint64_t{1} << 30;

std::vector<Zygote::Module> loaded() {
  std::vector<Zygote::Module> modules;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) != 2) continue;
    const size_t slash = line.find('/');
    if (slash == std::string::npos) {
      // Zero-initialised variables lie behind the part that comes from the file.
      if (!modules.empty() && modules.back().end == begin && line.find('[') == std::string::npos)
        modules.back().end = end;
      continue;
    }
    const std::string path = line.substr(slash);
    if (modules.empty() || modules.back().path != path)
      modules.push_back({path, begin, end, false});
    else
      modules.back().end = end;
  }
  return modules;
}

}  // namespace

Modules::Modules() {
  std::error_code ignored;
  program_ = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  Dl_info self{};
  static const char here = 0;
  dladdr(&here, &self);
  const std::filesystem::path library = std::filesystem::canonical(self.dli_fname, ignored);
  std::vector<Zygote::Module> modules = loaded();
  uint64_t next = kLibraries;
  for (Zygote::Module& module : modules) {
    const bool program = module.path == program_;
    bool system = false;
    for (const char* folder : {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"})
      system = system || module.path.rfind(folder, 0) == 0;
    module.user = program || (!system && module.path != library.string());
    if (!module.user) continue;
    // A program below 1 TB was linked to a fixed address.
    const bool moves = !program || module.begin >= uint64_t{1} << 40;
    const uint64_t to = !moves ? module.begin : program ? kProgram : next;
    if (!program) next += kSpacing;
    const Moved moved{module.begin, module.end - module.begin, to - module.begin};
    module.begin = to;
    module.end = to + moved.size;
    moved_.push_back(moved);
  }
  names_->learn_modules(modules);
  for (const preload::Range& range : names_->variables(kWaiters))
    library_state_.push_back({this->here(range.begin), this->here(range.end)});
  moved_.push_back({kStacks, kMostFibers * kStackSlot, kLocals - kStacks});
}

void Modules::forget_library_state() const {
  for (const preload::Range& range : library_state_)
    std::memset(reinterpret_cast<void*>(range.begin), 0, range.end - range.begin);
}

void Modules::describe(preload::Channel& channel) const {
  channel.user_count = channel.wrapper_count = 0;
  std::fill_n(channel.outside, preload::kMostOutside, 0);
  for (size_t i = 0; i + 1 < moved_.size() && channel.user_count < preload::kMostModules; ++i)
    channel.user[channel.user_count++] = {moved_[i].begin, moved_[i].begin + moved_[i].size};
  for (const preload::Range& range : names_->wrappers())
    if (channel.wrapper_count < preload::kMostWrappers)
      channel.wrappers[channel.wrapper_count++] = {here(range.begin), here(range.end)};
}

}  // namespace slalom::checking
