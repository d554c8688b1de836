// Random numbers that are the same in every execution with the same schedule, whichever way the program gets
// them.
#include "preload/io/random.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include "preload/io/file_identity.h"
#include "preload/memory/accesses.h"
#include "preload/runtime/errors.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constexpr int kMostDescriptors = 1024;
constinit bool random_devices[kMostDescriptors] = {};

bool names_random_device(const char* path) {
  return path != nullptr && (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0);
}

int opened(int descriptor, const char* path) {
  if (descriptor >= 0 && descriptor < kMostDescriptors && runtime().controls() && names_random_device(path))
    random_devices[descriptor] = true;
  return descriptor;
}

// A stream in place of the one that fopen() would read by itself.
FILE* open_stream() {
  const cookie_io_functions_t functions{.read =
                                            [](void*, char* buffer, size_t size) {
                                              fill_random(buffer, size);
                                              return static_cast<ssize_t>(size);
                                            },
                                        .write = nullptr,
                                        .seek = nullptr,
                                        .close = nullptr};
  return fopencookie(nullptr, "r", functions);
}

}  // namespace

bool is_random_device(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors && random_devices[descriptor];
}
void forget_random_device(int descriptor) {
  if (is_random_device(descriptor)) random_devices[descriptor] = false;
}
void fill_random(void* buffer, size_t size) {
  auto* bytes = static_cast<unsigned char*>(buffer);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(runtime().random() >> 32);
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define OPEN(name)                                                                \
  SLALOM_EXPORT int name(const char* path, int flags, ...) {                      \
    va_list list;                                                                 \
    va_start(list, flags);                                                        \
    const mode_t mode = va_arg(list, mode_t);                                     \
    va_end(list);                                                                 \
    if (runtime().controls() && is_fifo(AT_FDCWD, path))                          \
      return open_fifo(AT_FDCWD, path, flags, SLALOM_PLACE());                    \
    note_path(path);                                                              \
    if ((flags & O_ACCMODE) != O_RDONLY) runtime().begin_executions_here();       \
    const Subject file = changed_at(path, (flags & O_CREAT) != 0);                \
    return opened(SLALOM_PASS_ON(name, open, file, -1, path, flags, mode), path); \
  }
OPEN(open)
OPEN(open64)
#undef OPEN
#define OPEN_AT(name)                                                                       \
  SLALOM_EXPORT int name(int folder, const char* path, int flags, ...) {                    \
    va_list list;                                                                           \
    va_start(list, flags);                                                                  \
    const mode_t mode = va_arg(list, mode_t);                                               \
    va_end(list);                                                                           \
    if (runtime().controls() && is_fifo(folder, path))                                      \
      return open_fifo(folder, path, flags, SLALOM_PLACE());                                \
    note_path(path);                                                                        \
    if ((flags & O_ACCMODE) != O_RDONLY) runtime().begin_executions_here();                 \
    const Subject file = changed_at(path, (flags & O_CREAT) != 0);                          \
    return opened(SLALOM_PASS_ON(name, openat, file, -1, folder, path, flags, mode), path); \
  }
OPEN_AT(openat)
OPEN_AT(openat64)
#undef OPEN_AT
// A call that fails has allocated a stream and freed it: what is allocated later has another address without
// that. One that opens nothing does the same.
#define OPEN_STREAM(name)                                                              \
  SLALOM_EXPORT FILE* name(const char* path, const char* mode) {                       \
    if (!runtime().controls()) return SLALOM_REAL(name)(path, mode);                   \
    if (names_random_device(path)) return open_stream();                               \
    if (is_fifo(AT_FDCWD, path)) return open_fifo_stream(path, mode, SLALOM_PLACE());  \
    note_path(path);                                                                   \
    if (strchr(mode, '+') != nullptr) runtime().begin_executions_here();               \
    FILE* const none = nullptr;                                                        \
    return may_fail(                                                                   \
        {CallId::fopen, changed_at(path, mode[0] != 'r'), __builtin_return_address(0), \
         __builtin_dwarf_cfa()},                                                       \
        none, [&] { return SLALOM_REAL(name)(path, mode); },                           \
        [&] {                                                                          \
          SLALOM_REAL(name)                                                            \
          ("", mode);                                                                  \
        });                                                                            \
  }
OPEN_STREAM(fopen)
OPEN_STREAM(fopen64)
#undef OPEN_STREAM

#define PREAD(name, Offset)                                                                          \
  SLALOM_EXPORT ssize_t name(int descriptor, void* buffer, size_t size, Offset offset) {             \
    if (!runtime().controls() || !is_random_device(descriptor))                                      \
      return received(buffer, SLALOM_PASS_ON(name, pread, {}, -1, descriptor, buffer, size, offset), \
                      __builtin_return_address(0));                                                  \
    fill_random(buffer, size);                                                                       \
    return static_cast<ssize_t>(size);                                                               \
  }
PREAD(pread, off_t)
PREAD(pread64, off64_t)
#undef PREAD

SLALOM_EXPORT ssize_t getrandom(void* buffer, size_t size, unsigned flags) {
  if (!runtime().controls()) return SLALOM_REAL(getrandom)(buffer, size, flags);
  fill_random(buffer, size);
  return static_cast<ssize_t>(size);
}
SLALOM_EXPORT int getentropy(void* buffer, size_t size) {
  if (!runtime().controls()) return SLALOM_REAL(getentropy)(buffer, size);
  fill_random(buffer, size);
  return 0;
}
SLALOM_EXPORT uint32_t arc4random() noexcept {
  if (!runtime().controls()) return SLALOM_REAL(arc4random)();
  return static_cast<uint32_t>(runtime().random() >> 32);
}
SLALOM_EXPORT uint32_t arc4random_uniform(uint32_t below) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(arc4random_uniform)(below);
  return below < 2 ? 0 : static_cast<uint32_t>(runtime().random() >> 32) % below;
}
SLALOM_EXPORT void arc4random_buf(void* buffer, size_t size) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(arc4random_buf)(buffer, size);
  fill_random(buffer, size);
}
// std::random_device::_M_getval(), which uses a processor instruction.
extern "C" unsigned _ZNSt13random_device9_M_getvalEv(void*);
SLALOM_EXPORT unsigned _ZNSt13random_device9_M_getvalEv(void* device) {
  if (!runtime().controls()) return SLALOM_REAL(_ZNSt13random_device9_M_getvalEv)(device);
  return static_cast<unsigned>(runtime().random() >> 32);
}
