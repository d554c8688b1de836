// mkstemp() and its kin. libc derives the names of temporary files from the system's random numbers. Here
// names derive from a counter, so they are the same in every execution with the same schedule.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/runtime/errors.h"
#include "preload/runtime/raw.h"

namespace slalom::preload {
namespace {

constexpr size_t kLetters = 6;
constexpr char kTemplate[] = "XXXXXX";
// Existing names to skip, left by executions that did not remove their files.
constexpr uint32_t kMostTaken = 64;
constinit uint32_t names_given = 0;

// `create` creates the file or folder that `path` then names. libc's own function (`real`) reports all other
// errors.
template <typename Result, typename Create, typename Real>
Result create_temporary(char* path, Result failed, Create create, Real real) {
  const size_t length = strlen(path);
  char* letters = path + length - kLetters;
  if (!runtime().controls() || length < kLetters || memcmp(letters, kTemplate, kLetters) != 0) return real();
  runtime().begin_executions_here();
  uint64_t number = ++names_given * uint64_t{0x9e3779b97f4a7c15u};
  for (uint32_t taken = 0; taken < kMostTaken; ++taken, number += 0xd1b54a32d192ed03u) {
    uint64_t left = number >> 8;
    for (size_t i = 0; i < kLetters; ++i, left /= 26) letters[i] = static_cast<char>('a' + left % 26);
    const Result made = create();
    if (made != failed || errno != EEXIST) {
      const int error = errno;
      if (made == failed) memcpy(letters, kTemplate, kLetters);
      errno = error;
      return made;
    }
  }
  memcpy(letters, kTemplate, kLetters);
  return real();
}

int create_file(char* path, int flags) {
  constexpr int kSetByItself = O_ACCMODE | O_CREAT | O_EXCL;
  return create_temporary(
      path, -1,
      [&] { return SLALOM_REAL(open)(path, (flags & ~kSetByItself) | O_RDWR | O_CREAT | O_EXCL, 0600); },
      [&] { return SLALOM_REAL(mkostemp)(path, flags); });
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom::preload;

// These calls overwrite the name in their argument, so it is not kept as a subject.
#define TEMPORARY(Result, name, id, parameters, failed, make)                                         \
  SLALOM_EXPORT Result name parameters {                                                              \
    return pass_on<ByErrno>(                                                                          \
        runtime().controls(),                                                                         \
        {CallId::id, {nullptr, 0, true}, __builtin_return_address(0), __builtin_dwarf_cfa()}, failed, \
        [&] { return make; });                                                                        \
  }
TEMPORARY(int, mkstemp, mkstemp, (char* path), -1, create_file(path, 0))
TEMPORARY(int, mkstemp64, mkstemp, (char* path), -1, create_file(path, 0))
TEMPORARY(int, mkostemp, mkostemp, (char* path, int flags), -1, create_file(path, flags))
TEMPORARY(int, mkostemp64, mkostemp, (char* path, int flags), -1, create_file(path, flags))
SLALOM_EXPORT char* mkdtemp(char* path) noexcept {
  char* const none = nullptr;
  return pass_on<ByErrno>(
      runtime().controls(),
      {CallId::mkdtemp, {nullptr, 0, true}, __builtin_return_address(0), __builtin_dwarf_cfa()}, none, [&] {
        return create_temporary(
            path, none, [&] { return SLALOM_REAL(mkdir)(path, 0700) == 0 ? path : none; },
            [&] { return SLALOM_REAL(mkdtemp)(path); });
      });
}
