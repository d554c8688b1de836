// Errors that come from outside the program, such as a missing file or a port without a listener. The runtime
// reports them to slalom. A replay gives the same errors again without making the call.
//
// An interposed function passes such a call on through may_fail(). It counts the agent's calls, including
// those that succeed, and finds repeated errors by that count. Not for errors that the schedule decides
// (EAGAIN of a pipe, EINTR): these recur by themselves.
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include <cstdint>

#include "preload/runtime/calls.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {

// The file or address that a call names.
struct Subject {
  const void* bytes = nullptr;  // a path or a network address; nullptr for an open descriptor
  size_t size = 0;              // 0 means that `bytes` is a string
  bool changes = false;         // the call changes what other agents find outside
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
  // The place of the call: the return address of the interposed function and the stack above it. Without a
  // return address it is the place of the agent's operation.
  void* from = nullptr;
  const void* stack = nullptr;
  bool busy_outside =
      false;  // EAGAIN is no result of the schedule, because another program holds the resource
};

// How a call reports an error. ByErrno: it returns `failed` and sets errno. ByResult: it returns the error
// itself.
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
struct ByResult {  // `failed` is the result (of getaddrinfo()) that means an error in errno; 0 if none does
  static int error_of(int result, int failed) { return result != 0 && result == failed ? errno : result; }
  static int give(int error, int failed) {
    if (failed == 0 || error < 0) return error;
    errno = error;
    return failed;
  }
};

// `instead` has the other effects of a failing call, which may change the heap.
template <typename How = ByErrno, typename Failed, typename Make, typename Instead>
auto may_fail(const FallibleCall& what, Failed failed, Make make, Instead instead) {
  using Result = decltype(make());
  int error = 0;
  if (runtime().repeats_error(what, error)) {
    instead();
    return How::give(error, static_cast<Result>(failed));
  }
  const Result result = make();
  const int kept = errno;
  runtime().note_result(what, How::error_of(result, static_cast<Result>(failed)));
  errno = kept;
  return result;
}

template <typename How = ByErrno, typename Failed, typename Make>
auto may_fail(const FallibleCall& what, Failed failed, Make make) {
  return may_fail<How>(what, failed, make, [] {});
}

// The same for a call that has effects even if it fails. So the call is always made.
template <typename Make>
int may_fail_when_done(const FallibleCall& what, Make make) {
  int error = 0;
  const uint32_t ordinal = runtime().me().calls;  // the call may make others
  const bool repeats = runtime().repeats_error(what, error);
  const int result = make();
  if (!repeats) {
    error = errno;
    const bool is_own = result >= 0 || error == EBADF;  // programs close descriptors that are not open
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

// For interposed functions: passes the call on, and keeps its errors if an agent made it. `id` is the
// function's name in capsules.
#define SLALOM_PASS_ON_BY(how, name, id, subject, failed, ...)                                              \
  ::slalom::preload::pass_on<::slalom::preload::how>(                                                       \
      ::slalom::preload::runtime().controls(),                                                              \
      {::slalom::preload::CallId::id, subject, __builtin_return_address(0), __builtin_dwarf_cfa()}, failed, \
      [&] { return SLALOM_REAL(name)(__VA_ARGS__); })
#define SLALOM_PASS_ON(name, id, subject, failed, ...) \
  SLALOM_PASS_ON_BY(ByErrno, name, id, subject, failed, __VA_ARGS__)
