// Modules that the program loads by itself after main() began. The runtime tells slalom where each module
// lies before the first operation in it. Within an execution an address never belongs to two modules:
// keep_free() reserves the range of a closed module.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>

#include "preload/openmp/inline_calls.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kMostKnown = 1024;
constinit uint64_t known[kMostKnown] = {};  // begin addresses of modules
constinit Range later[kMostModules] = {};   // the user's modules loaded after main() began
constinit uint32_t known_count = 0, later_count = 0;
constinit unsigned long long looked_at = 0;  // the loader's count of added modules at the last scan

Range range_of(const dl_phdr_info& info) {
  constexpr uint64_t kPage = 4096;
  Range range{UINT64_MAX, 0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    range.begin = std::min(range.begin, (info.dlpi_addr + segment.p_vaddr) & ~(kPage - 1));
    range.end =
        std::max(range.end, (info.dlpi_addr + segment.p_vaddr + segment.p_memsz + kPage - 1) & ~(kPage - 1));
  }
  return range;
}

bool is_known(uint64_t begin) {
  return std::find(known, known + known_count, begin) != known + known_count;
}

void add_known(uint64_t begin) {
  if (known_count < kMostKnown) known[known_count++] = begin;
}

bool is_of_system(const char* path) {
  for (const char* folder : {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"})
    if (strncmp(path, folder, strlen(folder)) == 0) return true;
  return false;
}

struct Module {
  Range range;
  const char* path;  // the loader's name, as the program gave it
};

// Returns the first module that is not known yet; its path is nullptr if there is none.
Module find_new() {
  Module found{};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        const Range range = range_of(*info);
        if (is_known(range.begin)) return 0;
        take_inline_calls(*info);
        *static_cast<Module*>(data) = {range, info->dlpi_name};
        return 1;
      },
      &found);
  return found;
}

bool is_loaded(uint64_t begin) {
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void* data) {
               return range_of(*info).begin == *static_cast<uint64_t*>(data) ? 1 : 0;
             },
             &begin) != 0;
}

unsigned long long count_added() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<unsigned long long*>(data) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

// Writes the absolute path, since slalom may have another working directory.
void write_path(const char* path, char (&to)[kPathBytes]) {
  size_t length = 0;
  if (path[0] != '/') {
    const long size = raw_syscall(SYS_getcwd, reinterpret_cast<long>(to), sizeof to);
    length = size > 0 ? static_cast<size_t>(size) - 1 : 0;
    if (length + 1 < sizeof to) to[length++] = '/';
  }
  const size_t rest = strnlen(path, sizeof to - length - 1);
  memcpy(to + length, path, rest);
  to[length + rest] = 0;
}

// Reserves the address ranges of modules that were closed.
void keep_free() {
  known_count = static_cast<uint32_t>(
      std::remove_if(known, known + known_count, [](uint64_t begin) { return !is_loaded(begin); }) - known);
  for (uint32_t i = 0; i < later_count;) {
    const Range range = later[i];
    if (is_loaded(range.begin)) {
      ++i;
      continue;
    }
    raw_syscall(SYS_mmap, static_cast<long>(range.begin), static_cast<long>(range.end - range.begin),
                PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    later[i] = later[--later_count];
  }
}

// Returns whether the module's code calls a function that forks.
bool calls_fork(const dl_phdr_info& info) {
  uint64_t symbols = 0, names = 0, tables[2] = {}, sizes[2] = {};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols = entry->d_un.d_ptr;
          break;
        case DT_STRTAB:
          names = entry->d_un.d_ptr;
          break;
        case DT_JMPREL:
          tables[0] = entry->d_un.d_ptr;
          break;
        case DT_PLTRELSZ:
          sizes[0] = entry->d_un.d_val;
          break;
        case DT_RELA:
          tables[1] = entry->d_un.d_ptr;
          break;
        case DT_RELASZ:
          sizes[1] = entry->d_un.d_val;
          break;
        default:
          break;
      }
  }
  // The vDSO, whose entries are offsets.
  if (symbols < info.dlpi_addr || names < info.dlpi_addr) return false;
  for (int table = 0; table < 2; ++table) {
    const auto* entry = reinterpret_cast<const ElfW(Rela)*>(tables[table]);
    for (const auto* end = entry + sizes[table] / sizeof *entry; entry < end; ++entry) {
      const auto* symbol = reinterpret_cast<const ElfW(Sym)*>(symbols) + ELF64_R_SYM(entry->r_info);
      if (symbol->st_shndx != SHN_UNDEF) continue;
      const auto* name = reinterpret_cast<const char*>(names + symbol->st_name);
      for (const char* one : {"fork", "_Fork", "vfork", "clone"})
        if (strcmp(name, one) == 0) return true;
    }
  }
  return false;
}

}  // namespace

void Runtime::look_for_forks() {
  forks_ = dl_iterate_phdr([](dl_phdr_info* info, size_t, void*) { return calls_fork(*info) ? 1 : 0; },
                           nullptr) != 0;
}

void Runtime::note_modules() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        add_known(range_of(*info).begin);
        return 0;
      },
      nullptr);
  looked_at = count_added();
}

void Runtime::find_modules() {
  if (!controls()) return;
  --module_scans_left_;
  const unsigned long long added = count_added();
  if (added == looked_at) return;
  module_scans_left_ = kMostModuleScans;
  for (Module module = find_new(); module.path != nullptr && known_count < kMostKnown; module = find_new()) {
    add_known(module.range.begin);
    if (!forks_) look_for_forks();
    if (is_of_system(module.path)) continue;
    if (later_count < kMostModules) later[later_count++] = module.range;
    channel_->loaded.range = module.range;
    write_path(module.path, channel_->loaded.path);
    channel_->choice.current = self();
    hand_over(Phase::Loaded);
  }
  looked_at = added;
}

}  // namespace slalom::preload

using namespace slalom::preload;

// The loader examines its caller to find out where to search. So these functions jump to libc's instead of
// calling them.
extern "C" __attribute__((used)) void* slalom_real_dlopen() {
  runtime().begin_executions_here();
  if (runtime().controls()) runtime().load_modules();
  return reinterpret_cast<void*>(SLALOM_REAL(dlopen));
}
extern "C" __attribute__((used)) void* slalom_real_dlmopen(Lmid_t space) {
  runtime().begin_executions_here();
  if (runtime().controls()) runtime().load_modules();
  if (runtime().controls() && space != LM_ID_BASE) runtime().note_uncontrolled(Uncontrolled::Namespace);
  return reinterpret_cast<void*>(SLALOM_REAL(dlmopen));
}
SLALOM_EXPORT __attribute__((naked)) void* dlopen(const char*, int) noexcept {
  asm("push %rdi\n\tpush %rsi\n\tsub $8, %rsp\n\t"
      "call slalom_real_dlopen\n\t"
      "add $8, %rsp\n\tpop %rsi\n\tpop %rdi\n\tjmp *%rax");
}
SLALOM_EXPORT __attribute__((naked)) void* dlmopen(Lmid_t, const char*, int) noexcept {
  asm("push %rdi\n\tpush %rsi\n\tpush %rdx\n\t"
      "call slalom_real_dlmopen\n\t"
      "pop %rdx\n\tpop %rsi\n\tpop %rdi\n\tjmp *%rax");
}
SLALOM_EXPORT int dlclose(void* handle) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(dlclose)(handle);
  runtime().look_for_modules();
  const int result = SLALOM_REAL(dlclose)(handle);
  keep_free();
  return result;
}
