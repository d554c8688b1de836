// The key in freed memory. glibc's malloc writes a random number into the second word of freed memory to
// detect double frees, and each process has another one. This code makes it the same in all processes, for
// programs that read freed memory.
//
// glibc does not export the key. It is the only variable of libc that has the value which free() leaves in
// memory, and after it is changed, free() must leave the new value. If another allocator is behind malloc(),
// nothing happens.
#include "preload/memory/tcache_key.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint64_t kKey = 0xa4093822299f31d0;
constexpr uint64_t kUntouched = 0x082efa98ec4e6c89;
constexpr uintptr_t kPage = 4096;

void* module_of(void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// Other allocators may unmap freed memory.
bool glibc_allocates() {
  void* first = dlsym(RTLD_DEFAULT, "free");  // this library's, unless the program has its own
  void* next = reinterpret_cast<void*>(SLALOM_REAL(free));
  void* libc = reinterpret_cast<void*>(&gnu_get_libc_version);
  return module_of(first) == module_of(reinterpret_cast<void*>(&fix_tcache_key)) &&
         module_of(next) == module_of(libc);
}

uint64_t left_by_free() {
  void* memory = SLALOM_REAL(malloc)(2 * sizeof(uint64_t));
  if (memory == nullptr) return kUntouched;
  volatile uint64_t* words = static_cast<uint64_t*>(memory);
  words[1] = kUntouched;
  SLALOM_REAL(free)(memory);
  return words[1];
}

template <typename Use>
void each_word(uintptr_t begin, uintptr_t end, const Use& use) {
  for (uintptr_t at = (begin + 7) & ~uintptr_t{7}; at + 8 <= end; at += 8)
    use(*reinterpret_cast<uint64_t*>(at));
}

template <typename Use>
void each_segment(const dl_phdr_info& module, const Use& use) {
  for (uint16_t i = 0; i < module.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = module.dlpi_phdr[i];
    const uintptr_t begin = module.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) use(begin, begin + header.p_memsz, (header.p_flags & PF_W) != 0);
  }
}

struct Search {
  uint64_t value;
  uint64_t* found;
  uint32_t count;
  uintptr_t program_end;  // where the heap begins, at the earliest
};

int search_module(dl_phdr_info* module, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const bool program = search.program_end == 0;  // the program comes first
  bool libc = false;
  each_segment(*module, [&](uintptr_t begin, uintptr_t end, bool) {
    const auto code = reinterpret_cast<uintptr_t>(&gnu_get_libc_version);
    if (code >= begin && code < end) libc = true;
    if (program && end > search.program_end) search.program_end = end;
  });
  if (!libc) return 0;
  each_segment(*module, [&](uintptr_t begin, uintptr_t end, bool writable) {
    if (!writable) return;
    each_word(begin, end, [&](uint64_t& word) {
      if (word != search.value) return;
      search.found = &word;
      ++search.count;
    });
  });
  return 0;
}

[[gnu::noinline]] void change_key() {
  const uint64_t old = left_by_free();
  if (old == kUntouched) return;
  Search search{old, nullptr, 0, 0};
  dl_iterate_phdr(search_module, &search);
  if (search.count != 1) return;
  *search.found = kKey;
  if (left_by_free() != kKey) {
    *search.found = old;
    return;
  }
  // Changes the key in memory that was freed before.
  const auto heap_end = reinterpret_cast<uintptr_t>(sbrk(0));
  unsigned char resident;
  for (uintptr_t page = (search.program_end + kPage - 1) & ~(kPage - 1); page < heap_end; page += kPage) {
    if (mincore(reinterpret_cast<void*>(page), kPage, &resident) != 0) break;
    each_word(page, page + kPage, [&](uint64_t& word) {
      if (word == old) word = kKey;
    });
  }
}

}  // namespace

void fix_tcache_key() {
  if (!glibc_allocates()) return;
  change_key();
  clear_stack();  // removes the old key from the stack
}

}  // namespace slalom::preload
