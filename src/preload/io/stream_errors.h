// Errors that libc meets while it reads or writes a stream (FILE): kept as those of other calls are
// (preload/runtime/errors.h). A call counts as failed where libc marks the stream for it and it gives what
// says that nothing was done; one that did a part cannot come again, and is not kept. Not for streams on
// channels: these are read and written by functions that keep errors themselves.
#pragma once

#include <stdio.h>
#include <stdio_ext.h>

#include "preload/io/channels.h"
#include "preload/runtime/errors.h"

namespace slalom::preload {

enum class StreamUse : uint8_t { Reads, Writes };

template <typename Result, typename Failed, typename Make>
Result stream_may_fail(const FallibleCall& what, FILE* stream, StreamUse use, Failed failed, Make make) {
  Runtime& rt = runtime();
  if (stream != nullptr && is_ours(stream->_fileno)) return make();
  int error = 0;
  if (rt.repeats_error(what, error)) {
    // What could not be written is dropped by libc, too.
    if (stream != nullptr && use == StreamUse::Writes) __fpurge(stream);
    if (stream != nullptr) stream->_flags |= _IO_ERR_SEEN;
    errno = error;
    return static_cast<Result>(failed);
  }
  const uint32_t calls = rt.me().calls;
  const int marked = stream == nullptr ? 0 : stream->_flags & _IO_ERR_SEEN;
  if (stream != nullptr) stream->_flags &= ~_IO_ERR_SEEN;
  const Result result = make();
  const int kept = errno;
  const bool fails =
      result == static_cast<Result>(failed) && (stream == nullptr || (stream->_flags & _IO_ERR_SEEN) != 0);
  if (stream != nullptr) stream->_flags |= marked;
  // A stream with functions of the program's own: the calls that these make are the ones that failed.
  if (calls == rt.me().calls) rt.note_result(what, fails ? kept : 0);
  errno = kept;
  return result;
}

// The stream is closed, whatever it gives.
template <typename Make>
int closing_may_fail(const FallibleCall& what, FILE* stream, Make make) {
  Runtime& rt = runtime();
  if (is_ours(stream->_fileno)) return make();
  int error = 0;
  const uint32_t ordinal = rt.me().calls;
  const bool repeats = rt.repeats_error(what, error);
  if (repeats) __fpurge(stream);  // what could not be written then
  const int before = errno;
  errno = 0;
  const int result = make();
  const int now = errno != 0 ? errno : before;
  if (!repeats) rt.note_result(what, result == EOF ? errno : 0, ordinal);
  errno = repeats ? error : now;
  return repeats ? EOF : result;
}

}  // namespace slalom::preload
