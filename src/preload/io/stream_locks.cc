// Streams (FILE) and their locks: flockfile and its kin. While a thread holds such a lock across other
// operations, other threads that use the stream wait for it before they call libc, which would block. This
// file also keeps the errors that libc meets in these calls.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "preload/io/stream_errors.h"
#include "preload/runtime/raw.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constinit bool ever_locked = false;  // any stream, by flockfile() or ftrylockfile()
constinit uint32_t locked = 0;       // number of streams locked now

// The lock that glibc has in every stream.
struct StreamLock {
  int lock, count;
  void* owner;
};

const StreamLock& lock_of(const FILE* stream) {
  return *reinterpret_cast<const StreamLock*>(stream->_lock);
}

bool is_own(const FILE* stream) {
  return lock_of(stream).owner == reinterpret_cast<void*>(pthread_self());
}

struct StreamWait : KernelWait {
  const FILE* stream;
};

bool is_free(const KernelWait& asked) {
  return __atomic_load_n(&lock_of(static_cast<const StreamWait&>(asked).stream).lock, __ATOMIC_RELAXED) == 0;
}

void await(FILE* stream, uint64_t pc) {
  const StreamWait wait{{is_free}, stream};
  runtime().me().outside = false;
  runtime().arrive(OpKind::Lock, object_id(stream), pc, Need::Kernel, &wait);
  runtime().tell(OpKind::Lock, object_id(stream), 0);
}

// Waits for the stream's lock before libc uses the stream. nullptr, which means all streams, does not wait.
void before_use(FILE* used, uint64_t pc) {
  if (used == nullptr || used->_lock == nullptr || is_own(used)) return;
  await(used, pc);
  runtime().tell(OpKind::Unlock, object_id(used), 1);
  runtime().retire();
}

}  // namespace

bool any_stream_locked() {
  return locked != 0;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT void flockfile(FILE* stream) noexcept {
  if (!runtime().controls() || is_own(stream)) return SLALOM_REAL(flockfile)(stream);
  await(stream, SLALOM_PLACE());
  SLALOM_REAL(flockfile)(stream);
  runtime().hold_read(stream);
  ever_locked = true;
  ++locked;
  runtime().retire();
}
SLALOM_EXPORT int ftrylockfile(FILE* stream) noexcept {
  if (!runtime().controls() || is_own(stream)) return SLALOM_REAL(ftrylockfile)(stream);
  Runtime& rt = runtime();
  rt.arrive(OpKind::TryLock, object_id(stream), SLALOM_PLACE());
  const int result = SLALOM_REAL(ftrylockfile)(stream);
  rt.tell(result == 0 ? OpKind::Lock : OpKind::TryLock, object_id(stream), 0);
  if (result == 0) rt.hold_read(stream);
  ever_locked = true;
  locked += result == 0;
  rt.retire(result != 0);
  return result;
}
SLALOM_EXPORT void funlockfile(FILE* stream) noexcept {
  Runtime& rt = runtime();
  if (!rt.controls() || !is_own(stream) || lock_of(stream).count != 1)
    return SLALOM_REAL(funlockfile)(stream);
  rt.arrive(OpKind::Unlock, object_id(stream), SLALOM_PLACE());
  SLALOM_REAL(funlockfile)(stream);
  if (rt.drop_read(stream)) --locked;
  rt.tell(OpKind::Unlock, object_id(stream), 1);
  rt.retire();
}

// Most programs never lock a stream; then the lock is not examined.
#define BEFORE_USE(stream) \
  if (ever_locked && runtime().controls()) before_use(stream, SLALOM_PLACE())
#define FROM_HERE(id)                                                  \
  FallibleCall {                                                       \
    CallId::id, {}, __builtin_return_address(0), __builtin_dwarf_cfa() \
  }

// `id` is the function's name in capsules. `failed` is the result that means that nothing was done.
#define MAKE(Result, id, use, stream, failed, ...)                                              \
  runtime().controls() ? stream_may_fail<Result>(FROM_HERE(id), stream, StreamUse::use, failed, \
                                                 [&]() -> Result { return __VA_ARGS__; })       \
                       : __VA_ARGS__

#define PRINT(name, id, stream, call, parameters, ...)                                    \
  SLALOM_EXPORT int name parameters {                                                     \
    BEFORE_USE(stream);                                                                   \
    va_list list;                                                                         \
    va_start(list, format);                                                               \
    const int result = MAKE(int, id, Writes, stream, -1, SLALOM_REAL(call)(__VA_ARGS__)); \
    va_end(list);                                                                         \
    return result;                                                                        \
  }
extern "C" int __vfprintf_chk(FILE*, int, const char*, va_list);
extern "C" int __fprintf_chk(FILE*, int, const char*, ...);
extern "C" int __printf_chk(int, const char*, ...);
extern "C" int __vprintf_chk(int, const char*, va_list);
PRINT(printf, printf, stdout, vfprintf, (const char* format, ...), stdout, format, list)
PRINT(fprintf, fprintf, stream, vfprintf, (FILE * stream, const char* format, ...), stream, format, list)
PRINT(__printf_chk, printf, stdout, __vfprintf_chk, (int flag, const char* format, ...), stdout, flag, format,
      list)
PRINT(__fprintf_chk, fprintf, stream, __vfprintf_chk, (FILE * stream, int flag, const char* format, ...),
      stream, flag, format, list)
#undef PRINT

#define USE(Result, name, id, use, stream, failed, parameters, ...)               \
  SLALOM_EXPORT Result name parameters {                                          \
    BEFORE_USE(stream);                                                           \
    return MAKE(Result, id, use, stream, failed, SLALOM_REAL(name)(__VA_ARGS__)); \
  }
USE(int, vprintf, printf, Writes, stdout, -1, (const char* format, va_list list), format, list)
USE(int, vfprintf, fprintf, Writes, stream, -1, (FILE * stream, const char* format, va_list list), stream,
    format, list)
USE(int, __vprintf_chk, printf, Writes, stdout, -1, (int flag, const char* format, va_list list), flag,
    format, list)
USE(int, __vfprintf_chk, fprintf, Writes, stream, -1,
    (FILE * stream, int flag, const char* format, va_list list), stream, flag, format, list)
USE(int, puts, puts, Writes, stdout, EOF, (const char* text), text)
USE(int, putchar, fputc, Writes, stdout, EOF, (int byte), byte)
USE(int, fputs, fputs, Writes, stream, EOF, (const char* text, FILE* stream), text, stream)
USE(int, fputc, fputc, Writes, stream, EOF, (int byte, FILE* stream), byte, stream)
USE(int, putc, fputc, Writes, stream, EOF, (int byte, FILE* stream), byte, stream)
USE(size_t, fwrite, fwrite, Writes, stream, 0, (const void* from, size_t size, size_t count, FILE* stream),
    from, size, count, stream)
USE(size_t, fread, fread, Reads, stream, 0, (void* to, size_t size, size_t count, FILE* stream), to, size,
    count, stream)
USE(char*, fgets, fgets, Reads, stream, nullptr, (char* to, int size, FILE* stream), to, size, stream)
USE(int, fgetc, fgetc, Reads, stream, EOF, (FILE * stream), stream)
USE(int, getc, fgetc, Reads, stream, EOF, (FILE * stream), stream)
USE(int, getchar, fgetc, Reads, stdin, EOF, (), )
USE(ssize_t, getline, getline, Reads, stream, -1, (char** line, size_t* size, FILE* stream), line, size,
    stream)
USE(ssize_t, getdelim, getline, Reads, stream, -1, (char** line, size_t* size, int end, FILE* stream), line,
    size, end, stream)
USE(ssize_t, __getdelim, getline, Reads, stream, -1, (char** line, size_t* size, int end, FILE* stream), line,
    size, end, stream)
USE(int, fflush, fflush, Writes, stream, EOF, (FILE * stream), stream)
#define SEEK(name, Offset) \
  USE(int, name, fseek, Writes, stream, -1, (FILE * stream, Offset to, int from), stream, to, from)
SEEK(fseek, long)
SEEK(fseeko, off_t)
SEEK(fseeko64, off64_t)
#undef SEEK
#undef USE

#define SCAN(name, stream, call, parameters, ...)                                             \
  SLALOM_EXPORT int name parameters {                                                         \
    BEFORE_USE(stream);                                                                       \
    va_list list;                                                                             \
    va_start(list, format);                                                                   \
    const int result = MAKE(int, fscanf, Reads, stream, EOF, SLALOM_REAL(call)(__VA_ARGS__)); \
    va_end(list);                                                                             \
    return result;                                                                            \
  }
// The header maps these names to the functions of the standard; libc has GNU's under the plain names.
extern "C" int __isoc99_vfscanf(FILE*, const char*, va_list);
extern "C" int plain_fscanf(FILE*, const char*, ...) __asm__("fscanf");
extern "C" int plain_scanf(const char*, ...) __asm__("scanf");
SCAN(fscanf, stream, __isoc99_vfscanf, (FILE * stream, const char* format, ...), stream, format, list)
SCAN(scanf, stdin, __isoc99_vfscanf, (const char* format, ...), stdin, format, list)
SCAN(plain_fscanf, stream, vfscanf, (FILE * stream, const char* format, ...), stream, format, list)
SCAN(plain_scanf, stdin, vfscanf, (const char* format, ...), stdin, format, list)
#undef SCAN
#undef MAKE

// The other functions that take the lock. Errors of the few that may fail are not kept.
#define LOOK(Result, name, parameters, ...) \
  SLALOM_EXPORT Result name parameters {    \
    BEFORE_USE(stream);                     \
    return SLALOM_REAL(name)(__VA_ARGS__);  \
  }
LOOK(long, ftell, (FILE * stream), stream)
LOOK(off_t, ftello, (FILE * stream), stream)
LOOK(off64_t, ftello64, (FILE * stream), stream)
LOOK(void, rewind, (FILE * stream), stream)
LOOK(int, fgetpos, (FILE * stream, fpos_t* to), stream, to)
LOOK(int, fsetpos, (FILE * stream, const fpos_t* to), stream, to)
LOOK(int, ungetc, (int byte, FILE* stream), byte, stream)
LOOK(int, feof, (FILE * stream) noexcept, stream)
LOOK(int, ferror, (FILE * stream) noexcept, stream)
LOOK(void, clearerr, (FILE * stream) noexcept, stream)
LOOK(int, setvbuf, (FILE * stream, char* room, int mode, size_t size) noexcept, stream, room, mode, size)
#undef LOOK

SLALOM_EXPORT int fclose(FILE* stream) {
  BEFORE_USE(stream);
  const auto close = [&] { return SLALOM_REAL(fclose)(stream); };
  return runtime().controls() ? closing_may_fail(FROM_HERE(fclose), stream, close) : close();
}
