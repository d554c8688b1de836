// Accesses that libc's functions make for an instrumented program. The compiler leaves these calls as they
// are, so the runtime would otherwise not see the accesses inside.
//
// They are reported before the call, as the compiler's own are. Calls from libraries, and all calls of other
// programs, go straight to libc.
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

#include "preload/memory/accesses.h"
#include "preload/runtime/errors.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint64_t kMostTold = 1 << 16;  // bytes of one call that are reported; the rest is ignored

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
// Returns the number of bytes that a comparison reads.
template <typename Fold>
size_t compared(const char* a, const char* b, size_t most, Fold fold) {
  if (!runtime().sees_accesses()) return 0;
  size_t at = 0;
  while (at < most && fold(a[at]) == fold(b[at]) && a[at] != 0) ++at;
  return at < most ? at + 1 : most;
}
size_t compared(const char* a, const char* b, size_t most) {
  return compared(a, b, most, [](char c) { return c; });
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
// Returns the number of bytes that a search reads; `all` if it found nothing.
size_t searched(const void* from, const void* found, size_t all) {
  if (!runtime().sees_accesses()) return 0;
  return found == nullptr
             ? all
             : static_cast<size_t>(static_cast<const char*>(found) - static_cast<const char*>(from)) + 1;
}

void parts_touched(OpKind op, const iovec* parts, size_t count, ssize_t size, void* return_address) {
  if (!runtime().sees_accesses()) return;
  for (size_t i = 0; i < count && size > 0; ++i) {
    const auto most = static_cast<size_t>(size);
    const size_t here = parts[i].iov_len < most ? parts[i].iov_len : most;
    touches(op, parts[i].iov_base, here, return_address);
    size -= static_cast<ssize_t>(here);
  }
}

}  // namespace

void sends(const void* buffer, size_t size, void* return_address) {
  reads(buffer, size, return_address);
}
void sends(const iovec* parts, size_t count, void* return_address) {
  parts_touched(OpKind::Load, parts, count, SSIZE_MAX, return_address);
}
ssize_t received(void* buffer, ssize_t size, void* return_address) {
  if (size <= 0) return size;
  runtime().drop_values(buffer, static_cast<size_t>(size));
  writes(buffer, static_cast<size_t>(size), return_address);
  return size;
}
ssize_t received(const iovec* parts, size_t count, ssize_t size, void* return_address) {
  for (size_t i = 0; size > 0 && i < count; ++i) runtime().drop_values(parts[i].iov_base, parts[i].iov_len);
  parts_touched(OpKind::Store, parts, count, size, return_address);
  return size;
}
void formats(const char* text, size_t size, void* return_address) {
  reads(text, size, return_address);
}
void formatted(const char* text, size_t size, void* return_address) {
  runtime().drop_values(text, size);
  writes(text, size, return_address);
}

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
  if (const size_t before = length(to); before > 0) writes(to + before - 1, length(from), FROM);
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
SLALOM_EXPORT char* strndup(const char* text, size_t most) noexcept {
  reads(text, length(text, most), FROM);
  return SLALOM_REAL(strndup)(text, most);
}
SLALOM_EXPORT char* stpcpy(char* to, const char* from) noexcept {
  reads(from, length(from), FROM);
  writes(to, length(from), FROM);
  return SLALOM_REAL(stpcpy)(to, from);
}
SLALOM_EXPORT char* strncat(char* to, const char* from, size_t most) noexcept {
  const size_t before = length(to), size = length(from, most);
  reads(to, before, FROM);
  reads(from, size, FROM);
  if (before > 0) writes(to + before - 1, size > 0 && from[size - 1] != 0 ? size + 1 : size, FROM);
  return SLALOM_REAL(strncat)(to, from, most);
}
SLALOM_EXPORT int strcasecmp(const char* a, const char* b) noexcept {
  const size_t size = compared(a, b, SIZE_MAX, lower);
  reads(a, size, FROM);
  reads(b, size, FROM);
  return SLALOM_REAL(strcasecmp)(a, b);
}
SLALOM_EXPORT int strncasecmp(const char* a, const char* b, size_t most) noexcept {
  const size_t size = compared(a, b, most, lower);
  reads(a, size, FROM);
  reads(b, size, FROM);
  return SLALOM_REAL(strncasecmp)(a, b, most);
}
SLALOM_EXPORT size_t strspn(const char* text, const char* set) noexcept {
  reads(set, length(set), FROM);
  const size_t found = SLALOM_REAL(strspn)(text, set);
  reads(text, found + 1, FROM);
  return found;
}
SLALOM_EXPORT size_t strcspn(const char* text, const char* set) noexcept {
  reads(set, length(set), FROM);
  const size_t found = SLALOM_REAL(strcspn)(text, set);
  reads(text, found + 1, FROM);
  return found;
}

// Searches are reported after the call, because only then their range is known. The C++ headers have two
// functions of each name; these definitions stand for both.
extern "C" {
void* slalom_memchr(const void*, int, size_t) noexcept __asm__("memchr");
char* slalom_strchr(const char*, int) noexcept __asm__("strchr");
char* slalom_strrchr(const char*, int) noexcept __asm__("strrchr");
char* slalom_strstr(const char*, const char*) noexcept __asm__("strstr");
}
#define HIDDEN(function, name)                            \
  ([] {                                                   \
    static void* found = nullptr;                         \
    if (found == nullptr) found = dlsym(RTLD_NEXT, name); \
    return reinterpret_cast<decltype(&function)>(found);  \
  }())
SLALOM_EXPORT void* slalom_memchr(const void* memory, int byte, size_t size) noexcept {
  void* found = HIDDEN(slalom_memchr, "memchr")(memory, byte, size);
  reads(memory, searched(memory, found, size), FROM);
  return found;
}
SLALOM_EXPORT char* slalom_strchr(const char* text, int byte) noexcept {
  char* found = HIDDEN(slalom_strchr, "strchr")(text, byte);
  reads(text, searched(text, found, length(text)), FROM);
  return found;
}
SLALOM_EXPORT char* slalom_strrchr(const char* text, int byte) noexcept {
  reads(text, length(text), FROM);
  return HIDDEN(slalom_strrchr, "strrchr")(text, byte);
}
SLALOM_EXPORT char* slalom_strstr(const char* text, const char* part) noexcept {
  reads(part, length(part), FROM);
  char* found = HIDDEN(slalom_strstr, "strstr")(text, part);
  const size_t tail = length(part);
  reads(text, found != nullptr ? searched(text, found, 0) + (tail > 2 ? tail - 2 : 0) : length(text), FROM);
  return found;
}

// Writes at a given position of a file. transfers.cc has those at the current position, random.cc has
// pread().
SLALOM_EXPORT ssize_t pwrite(int descriptor, const void* buffer, size_t size, off_t at) {
  sends(buffer, size, FROM);
  return SLALOM_PASS_ON(pwrite, pwrite, {}, -1, descriptor, buffer, size, at);
}
SLALOM_EXPORT ssize_t pwrite64(int descriptor, const void* buffer, size_t size, off64_t at) {
  sends(buffer, size, FROM);
  return SLALOM_PASS_ON(pwrite64, pwrite, {}, -1, descriptor, buffer, size, at);
}

// The same functions, as called by a program built with -D_FORTIFY_SOURCE.
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
