// Errors that come from outside of the program: a file that does not exist, a port where nobody listens. They
// are told to slalom, and given again when an execution is repeated: then the call is not made.
//
// An interposed function that passes a call on does so through may_fail(). The agent's calls are counted
// there, whether they fail or not: its errors are found by that count. Not for what the schedule decides
// (EAGAIN of a pipe, EINTR): that comes again by itself.
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include <cstdint>

#include "preload/runtime/calls.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {

// What a call is about.
struct Subject {
  const void* bytes = nullptr;  // a path, or a network address; null: something that is open
  size_t size = 0;              // 0: it is a text
  bool changes = false;         // others may find another world after it
};
inline Subject found_at(const char* path) {
  return {path};
}
inline Subject changed_at(const char* path, bool changes = true) {
  return {path, 0, changes};
}
inline Subject found_at(const sockaddr* address, socklen_t length) {
  return {address, length};
}
inline Subject changed_at(const sockaddr* address, socklen_t length) {
  return {address, length, true};
}

struct FallibleCall {
  CallId call;
  Subject subject = {};
  // Where it was called: the return address of the interposed function, and the stack above it; or, without
  // a return address, where the agent's operation is.
  void* from = nullptr;
  const void* stack = nullptr;
  bool of_others = false;  // EAGAIN is not of the schedule: another program has what is asked for
};

// How a call says an error: by giving `failed` and setting errno, or by giving the error itself.
struct ByErrno {
  template <typename Result>
  static int error_of(Result result, Result failed) {
    return result == failed ? errno : 0;
  }
  template <typename Result>
  static Result give(int error, Result failed) {
    errno = error;
    return failed;
  }
};
struct ByItself {  // `failed`: what getaddrinfo() gives for one that is in errno; 0: there is no such thing
  static int error_of(int result, int failed) { return result != 0 && result == failed ? errno : result; }
  static int give(int error, int failed) {
    if (failed == 0 || error < 0) return error;
    errno = error;
    return failed;
  }
};

template <typename How = ByErrno, typename Failed, typename Make>
auto may_fail(const FallibleCall& what, Failed failed, Make make) {
  using Result = decltype(make());
  int error = 0;
  if (runtime().repeats_error(what, error)) return How::give(error, static_cast<Result>(failed));
  const Result result = make();
  const int kept = errno;
  runtime().note_result(what, How::error_of(result, static_cast<Result>(failed)));
  errno = kept;
  return result;
}

// The same where the call does something even if it fails, and so is always made.
template <typename Make>
int may_fail_when_done(const FallibleCall& what, Make make) {
  int error = 0;
  const uint32_t ordinal = runtime().me().calls;  // it may make others
  const bool repeats = runtime().repeats_error(what, error);
  const int result = make();
  if (!repeats) {
    error = errno;
    const bool is_own = result >= 0 || error == EBADF;  // programs close what is not open
    runtime().note_result(what, is_own ? 0 : error, ordinal);
  }
  if (repeats || result < 0) errno = error;
  return repeats ? -1 : result;
}

template <typename How, typename Failed, typename Make>
auto pass_on(bool controlled, const FallibleCall& what, Failed failed, Make make) {
  return controlled ? may_fail<How>(what, failed, make) : make();
}

}  // namespace slalom::preload

// In an interposed function: passes the call on, with its errors kept if it is an agent's. `id`: what the
// function is called in capsules.
#define SLALOM_PASS_ON_BY(how, name, id, subject, failed, ...)                                              \
  ::slalom::preload::pass_on<::slalom::preload::how>(                                                       \
      ::slalom::preload::runtime().controls(),                                                              \
      {::slalom::preload::CallId::id, subject, __builtin_return_address(0), __builtin_dwarf_cfa()}, failed, \
      [&] { return SLALOM_REAL(name)(__VA_ARGS__); })
#define SLALOM_PASS_ON(name, id, subject, failed, ...) \
  SLALOM_PASS_ON_BY(ByErrno, name, id, subject, failed, __VA_ARGS__)
