// What functions of libc read and write for a program whose accesses are seen. The compiler leaves these
// calls as they are, so that the accesses inside would go unnoticed.
//
// Told before the call is made, as the compiler's own. Calls from libraries, and all calls of other programs,
// go straight to libc.
#include <string.h>
#include <wchar.h>

#include "preload/accesses.h"
#include "preload/raw.h"
#include "preload/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint64_t kMostTold = 1 << 16;  // bytes of one call; of more, the beginning

void touches(OpKind op, const void* address, size_t size, void* return_address) {
  if (!runtime().sees_accesses() || !runtime().is_user_code(reinterpret_cast<uint64_t>(return_address) - 1))
    return;
  tell_range(op, address, size < kMostTold ? size : kMostTold, access_place(return_address));
}
void reads(const void* address, size_t size, void* return_address) {
  touches(OpKind::Load, address, size, return_address);
}
void writes(const void* address, size_t size, void* return_address) {
  touches(OpKind::Store, address, size, return_address);
}
size_t length(const char* text) {
  return runtime().sees_accesses() ? SLALOM_REAL(strlen)(text) + 1 : 0;
}
size_t length(const char* text, size_t most) {
  if (!runtime().sees_accesses()) return 0;
  const size_t whole = SLALOM_REAL(strnlen)(text, most);
  return whole < most ? whole + 1 : most;
}
// As far as a comparison looks.
size_t compared(const char* a, const char* b, size_t most) {
  if (!runtime().sees_accesses()) return 0;
  size_t at = 0;
  while (at < most && a[at] == b[at] && a[at] != 0) ++at;
  return at < most ? at + 1 : most;
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define FROM __builtin_return_address(0)

SLALOM_EXPORT void* memcpy(void* to, const void* from, size_t size) noexcept {
  reads(from, size, FROM);
  writes(to, size, FROM);
  return SLALOM_REAL(memcpy)(to, from, size);
}
SLALOM_EXPORT void* memmove(void* to, const void* from, size_t size) noexcept {
  reads(from, size, FROM);
  writes(to, size, FROM);
  return SLALOM_REAL(memmove)(to, from, size);
}
SLALOM_EXPORT void* memset(void* to, int value, size_t size) noexcept {
  writes(to, size, FROM);
  return SLALOM_REAL(memset)(to, value, size);
}
SLALOM_EXPORT int memcmp(const void* a, const void* b, size_t size) noexcept {
  reads(a, size, FROM);
  reads(b, size, FROM);
  return SLALOM_REAL(memcmp)(a, b, size);
}
SLALOM_EXPORT size_t strlen(const char* text) noexcept {
  reads(text, length(text), FROM);
  return SLALOM_REAL(strlen)(text);
}
SLALOM_EXPORT size_t strnlen(const char* text, size_t most) noexcept {
  reads(text, length(text, most), FROM);
  return SLALOM_REAL(strnlen)(text, most);
}
SLALOM_EXPORT char* strcpy(char* to, const char* from) noexcept {
  reads(from, length(from), FROM);
  writes(to, length(from), FROM);
  return SLALOM_REAL(strcpy)(to, from);
}
SLALOM_EXPORT char* strncpy(char* to, const char* from, size_t most) noexcept {
  reads(from, length(from, most), FROM);
  writes(to, most, FROM);
  return SLALOM_REAL(strncpy)(to, from, most);
}
SLALOM_EXPORT char* strcat(char* to, const char* from) noexcept {
  reads(to, length(to), FROM);
  reads(from, length(from), FROM);
  writes(to + length(to), length(from), FROM);
  return SLALOM_REAL(strcat)(to, from);
}
SLALOM_EXPORT int strcmp(const char* a, const char* b) noexcept {
  const size_t size = compared(a, b, SIZE_MAX);
  reads(a, size, FROM);
  reads(b, size, FROM);
  return SLALOM_REAL(strcmp)(a, b);
}
SLALOM_EXPORT int strncmp(const char* a, const char* b, size_t most) noexcept {
  const size_t size = compared(a, b, most);
  reads(a, size, FROM);
  reads(b, size, FROM);
  return SLALOM_REAL(strncmp)(a, b, most);
}
SLALOM_EXPORT char* strdup(const char* text) noexcept {
  reads(text, length(text), FROM);
  return SLALOM_REAL(strdup)(text);
}

// The same, as called by a program built with -D_FORTIFY_SOURCE.
extern "C" {
void* __memcpy_chk(void*, const void*, size_t, size_t) noexcept;
void* __memmove_chk(void*, const void*, size_t, size_t) noexcept;
void* __memset_chk(void*, int, size_t, size_t) noexcept;
char* __strcpy_chk(char*, const char*, size_t) noexcept;
}
SLALOM_EXPORT void* __memcpy_chk(void* to, const void* from, size_t size, size_t room) noexcept {
  reads(from, size, FROM);
  writes(to, size < room ? size : room, FROM);
  return SLALOM_REAL(__memcpy_chk)(to, from, size, room);
}
SLALOM_EXPORT void* __memmove_chk(void* to, const void* from, size_t size, size_t room) noexcept {
  reads(from, size, FROM);
  writes(to, size < room ? size : room, FROM);
  return SLALOM_REAL(__memmove_chk)(to, from, size, room);
}
SLALOM_EXPORT void* __memset_chk(void* to, int value, size_t size, size_t room) noexcept {
  writes(to, size < room ? size : room, FROM);
  return SLALOM_REAL(__memset_chk)(to, value, size, room);
}
SLALOM_EXPORT char* __strcpy_chk(char* to, const char* from, size_t room) noexcept {
  reads(from, length(from), FROM);
  writes(to, length(from), FROM);
  return SLALOM_REAL(__strcpy_chk)(to, from, room);
}
