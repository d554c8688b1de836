// Errors that libc meets while it reads or writes a stream (FILE). The runtime keeps them as it keeps those
// of other calls (preload/runtime/errors.h). A call counts as failed if libc marks the stream and returns the
// value that means that nothing was done. The error of a call that did a part of its work is not kept,
// because a replay cannot repeat it. Not for streams on channels: the functions that read and write these
// keep errors themselves.
#pragma once

#include <stdio.h>
#include <stdio_ext.h>

#include "preload/io/channels.h"
#include "preload/runtime/errors.h"

extern "C" void _IO_doallocbuf(FILE*);

namespace slalom::preload {

enum class StreamUse : uint8_t { Reads, Writes };

template <typename Result, typename Failed, typename Make>
Result stream_may_fail(const FallibleCall& what, FILE* stream, StreamUse use, Failed failed, Make make) {
  Runtime& rt = runtime();
  if (stream != nullptr && is_ours(stream->_fileno)) return make();
  int error = 0;
  if (rt.repeats_error(what, error)) {
    // libc, too, allocates the buffer before it reads or writes, and drops data that it cannot write.
    if (stream != nullptr && stream->_IO_buf_base == nullptr) _IO_doallocbuf(stream);
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
  // In a stream with functions of the program's own (fopencookie), the calls that these functions make are
  // the ones that failed.
  if (calls == rt.me().calls) rt.note_result(what, fails ? kept : 0);
  errno = kept;
  return result;
}

// As stream_may_fail(), for a call that closes the stream even if it fails.
template <typename Make>
int closing_may_fail(const FallibleCall& what, FILE* stream, Make make) {
  Runtime& rt = runtime();
  if (is_ours(stream->_fileno)) return make();
  int error = 0;
  const uint32_t ordinal = rt.me().calls;
  const bool repeats = rt.repeats_error(what, error);
  if (repeats) __fpurge(stream);  // drops the data that could not be written then
  const int before = errno;
  errno = 0;
  const int result = make();
  const int now = errno != 0 ? errno : before;
  if (!repeats) rt.note_result(what, result == EOF ? errno : 0, ordinal);
  errno = repeats ? error : now;
  return repeats ? EOF : result;
}

}  // namespace slalom::preload
