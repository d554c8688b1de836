#include "preload/runtime/errors.h"

#include <netinet/in.h>
#include <sys/un.h>

namespace slalom::preload {
namespace {

// Errors that depend on the schedule or on the progress of an operation, not on the world outside. EPIPE
// comes with a signal.
bool depends_on_schedule(int error) {
  for (int one : {EAGAIN, EINTR, EINPROGRESS, EALREADY, EPIPE})
    if (error == one) return true;
  return false;
}

uint64_t hash_of(const Subject& subject) {
  const auto* bytes = static_cast<const unsigned char*>(subject.bytes);
  if (bytes == nullptr) return 0;
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; subject.size == 0 ? bytes[i] != 0 : i < subject.size; ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

// Returns whether the call changes nothing outside the process except the position in a file. The write calls
// are included because the program can only write to files that it had open before main(): standard output
// and error, whose positions slalom restores.
bool is_read_only(CallId call) {
  switch (call) {
    case CallId::access:
    case CallId::close:
    case CallId::faccessat:
    case CallId::fclose:
    case CallId::fcntl:
    case CallId::fflush:
    case CallId::fgetc:
    case CallId::fgets:
    case CallId::fopen:
    case CallId::fprintf:
    case CallId::fputc:
    case CallId::fputs:
    case CallId::fread:
    case CallId::fscanf:
    case CallId::fseek:
    case CallId::fstat:
    case CallId::fstatat:
    case CallId::fstatvfs:
    case CallId::fwrite:
    case CallId::getcwd:
    case CallId::getline:
    case CallId::lstat:
    case CallId::open:
    case CallId::openat:
    case CallId::opendir:
    case CallId::pread:
    case CallId::preadv:
    case CallId::printf:
    case CallId::puts:
    case CallId::read:
    case CallId::readlink:
    case CallId::readlinkat:
    case CallId::readv:
    case CallId::realpath:
    case CallId::stat:
    case CallId::statfs:
    case CallId::statvfs:
    case CallId::statx:
    case CallId::write:
    case CallId::writev:
      return true;
    default:
      return false;
  }
}

// Describes the subject in at most 128 bytes; empty if its kind is unknown. Formats by hand, because libc's
// formatting functions are interposed.
const char* describe(const Subject& subject, char (&room)[128]) {
  if (subject.size == 0) return static_cast<const char*>(subject.bytes);
  char* to = room;
  const auto put = [&](uint32_t number, char before) {
    if (before != 0) *to++ = before;
    uint32_t unit = 1;
    while (number / unit >= 10) unit *= 10;
    for (; unit > 0; unit /= 10) *to++ = static_cast<char>('0' + number / unit % 10);
  };
  const auto* address = static_cast<const sockaddr*>(subject.bytes);
  if (subject.size >= sizeof(sockaddr_in) && address->sa_family == AF_INET) {
    const auto* internet = static_cast<const sockaddr_in*>(subject.bytes);
    const uint32_t host = ntohl(internet->sin_addr.s_addr);
    for (int shift = 24; shift >= 0; shift -= 8) put(host >> shift & 0xff, shift == 24 ? 0 : '.');
    put(ntohs(internet->sin_port), ':');
  } else if (subject.size > sizeof(sa_family_t) && address->sa_family == AF_UNIX) {
    const auto* path = static_cast<const sockaddr_un*>(subject.bytes)->sun_path;
    for (size_t i = 0; i < subject.size - sizeof(sa_family_t) && i < sizeof room - 1 && path[i] != 0; ++i)
      *to++ = path[i];
  }
  *to = 0;
  return room;
}

}  // namespace

// Returns whether the running agent would meet the error no matter what other agents did before. Does not
// tell files and addresses apart: a change to any of them counts.
bool Runtime::is_from_outside(const Subject& subject, int error) const {
  if (has_children()) return false;
  for (int own : {EMFILE, ENFILE, ENOMEM, EFAULT})
    if (error == own) return false;
  if (subject.bytes != nullptr) return outside_changer_ == kNoAgent || outside_changer_ == self();
  // EAGAIN gets here only with busy_outside.
  for (int device : {ENOSPC, EDQUOT, EIO, EROFS, ENXIO, ENODEV, EAGAIN})
    if (error == device) return true;
  return false;
}

// Returns the error of the running agent's call with this ordinal; nullptr if it did not fail.
const RepeatedError* Runtime::find_repeated(uint32_t ordinal) {
  Agent& agent = me();
  const uint64_t id = slot(self()).id;
  const auto comes_before = [&](const RepeatedError& one) {
    return one.agent != id ? one.agent < id : one.ordinal < ordinal;
  };
  if (agent.repeated == 0) {  // its first call: find its first error
    uint32_t low = 0, high = channel_->repeated_count;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (comes_before(channel_->repeated[middle]))
        low = middle + 1;
      else
        high = middle;
    }
    agent.repeated = low + 1;
  }
  uint32_t at = agent.repeated - 1;
  while (at < channel_->repeated_count && comes_before(channel_->repeated[at])) ++at;
  agent.repeated = at + 1;
  if (at == channel_->repeated_count) return nullptr;
  const RepeatedError& next = channel_->repeated[at];
  return next.agent == id && next.ordinal == ordinal ? &next : nullptr;
}

bool Runtime::repeats_error(const FallibleCall& what, int& error) {
  if (what.subject.changes || !is_read_only(what.call)) begin_executions_here();
  if (channel_->errors == Errors::Unkept) return false;
  const uint32_t ordinal = me().calls++;
  if (channel_->repeated_count == 0) return false;
  const RepeatedError* known = find_repeated(ordinal);
  if (known == nullptr || known->call != static_cast<uint32_t>(what.call)) return false;
  // Under another schedule the agent may make another call here, or other agents may have acted before it.
  if (channel_->errors == Errors::RepeatOutside &&
      (known->outside == 0 || !is_from_outside(what.subject, known->error) ||
       hash_of(what.subject) != known->subject))
    return false;
  error = known->error;
  keep_error(what, error, ordinal);
  return true;
}

void Runtime::note_result(const FallibleCall& what, int error, uint32_t ordinal) {
  if (channel_->errors == Errors::Unkept) return;
  if (error == 0 && what.subject.changes) note_change();
  if (error != 0 && (!depends_on_schedule(error) || (error == EAGAIN && what.busy_outside)))
    keep_error(what, error, ordinal);
}

void Runtime::note_change() {
  outside_changer_ = outside_changer_ == kNoAgent || outside_changer_ == self() ? self() : kSeveral;
}

void Runtime::keep_error(const FallibleCall& what, int error, uint32_t ordinal) {
  if (++channel_->error_count > kMostErrors) return note_uncontrolled(Uncontrolled::Errors);
  const bool readable = error != EFAULT;
  Record record{};
  record.pc = what.from != nullptr ? place(what.from, what.stack) : slot(self()).pc;
  record.object = readable ? hash_of(what.subject) : 0;
  record.state = ordinal;
  record.value = error;
  record.size = static_cast<uint8_t>(what.call);
  record.wrote = is_from_outside(what.subject, error);
  // Leaves some room for the text of the program's end.
  char room[128];
  if (readable && channel_->text_used < kTextBytes / 2) record.text = put_text(describe(what.subject, room));
  tell_error(record);
}

}  // namespace slalom::preload
