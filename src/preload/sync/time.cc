// Clocks and sleeping, in virtual time. A sleeping agent yields; the schedule decides how much other agents
// do meanwhile.
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kTicksPerSecond = 100;  // of times(), as sysconf(_SC_CLK_TCK) returns
constexpr clock_t kTicksAtStart = 100'000;

// The time of the clock at the program's start. The value is arbitrary but the same in every execution.
uint64_t start_of(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return 1'700'000'000 * kSecond;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return 0;
    default:
      return 1'000 * kSecond;
  }
}

// Returns false if a signal handler ended the sleep; `rest`, if not nullptr, then gets the remaining time.
bool sleep_until(uint64_t until, uint64_t pc, timespec* rest = nullptr) {
  Runtime& rt = runtime();
  rt.cancel_point(true);
  const Interruptible call(OnSignal::Ends);
  rt.arrive(OpKind::Yield, 0, pc, Need::Sleep);
  rt.cancel_point(false);
  if (call.ended()) {
    const uint64_t left = until > rt.now() ? until - rt.now() : 0;
    if (rest != nullptr) *rest = {static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
    errno = EINTR;
    return false;
  }
  rt.tell(OpKind::Yield, 0);
  rt.retire(true);
  rt.pass_time(until);
  return true;
}

}  // namespace

bool valid(const timespec* time) {
  return time != nullptr && time->tv_nsec >= 0 && time->tv_nsec < static_cast<long>(kSecond);
}

bool valid(clockid_t clock) {
  if (clock >= CLOCK_REALTIME && clock <= CLOCK_BOOTTIME) return true;
  timespec now;  // it may be the clock of another process or thread
  return raw_syscall(SYS_clock_gettime, clock, reinterpret_cast<long>(&now)) == 0;
}

uint64_t from_clock(clockid_t clock, const timespec& time) {
  const uint64_t start = start_of(clock);
  if (time.tv_sec < 0) return 0;
  const auto seconds = static_cast<uint64_t>(time.tv_sec);
  if (seconds > UINT64_MAX / 2 / kSecond) return kNever - 1;
  const uint64_t at = seconds * kSecond + static_cast<uint64_t>(time.tv_nsec);
  return at > start ? at - start : 0;
}

timespec to_clock(clockid_t clock, uint64_t nanoseconds) {
  const uint64_t at = start_of(clock) + nanoseconds;
  return {static_cast<time_t>(at / kSecond), static_cast<long>(at % kSecond)};
}

uint64_t after(const timespec& duration) {
  const auto seconds = static_cast<uint64_t>(duration.tv_sec < 0 ? 0 : duration.tv_sec);
  if (seconds > UINT64_MAX / 4 / kSecond) return kNever - 1;
  return runtime().now() + seconds * kSecond + static_cast<uint64_t>(duration.tv_nsec);
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(clock_gettime)(clock, time);
  if (!valid(clock)) return errno = EINVAL, -1;
  *time = to_clock(clock, runtime().read_clock(SLALOM_PLACE()));
  return 0;
}
SLALOM_EXPORT int gettimeofday(timeval* time, void* zone) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(gettimeofday)(time, zone);
  const timespec now = to_clock(CLOCK_REALTIME, runtime().read_clock(SLALOM_PLACE()));
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
SLALOM_EXPORT time_t time(time_t* result) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(time)(result);
  const time_t now = to_clock(CLOCK_REALTIME, runtime().read_clock(SLALOM_PLACE())).tv_sec;
  if (result != nullptr) *result = now;
  return now;
}
SLALOM_EXPORT int timespec_get(timespec* result, int base) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(timespec_get)(result, base);
  if (base != TIME_UTC) return 0;
  *result = to_clock(CLOCK_REALTIME, runtime().read_clock(SLALOM_PLACE()));
  return base;
}
SLALOM_EXPORT clock_t clock() noexcept {
  if (!runtime().controls()) return SLALOM_REAL(clock)();
  return static_cast<clock_t>(runtime().read_clock(SLALOM_PLACE()) / 1000);
}

SLALOM_EXPORT clock_t times(tms* used) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(times)(used);
  const auto ticks = static_cast<clock_t>(runtime().read_clock(SLALOM_PLACE()) / (kSecond / kTicksPerSecond));
  if (used != nullptr) *used = {.tms_utime = ticks, .tms_stime = 0, .tms_cutime = 0, .tms_cstime = 0};
  return kTicksAtStart + ticks;
}
// Processor time is virtual; all other counters are 0.
SLALOM_EXPORT int getrusage(__rusage_who_t who, rusage* used) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(getrusage)(who, used);
  const timespec now = to_clock(CLOCK_PROCESS_CPUTIME_ID, runtime().read_clock(SLALOM_PLACE()));
  memset(used, 0, sizeof *used);
  if (who != RUSAGE_CHILDREN) used->ru_utime = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

SLALOM_EXPORT int nanosleep(const timespec* duration, timespec* rest) {
  if (!runtime().controls()) return SLALOM_REAL(nanosleep)(duration, rest);
  if (!valid(duration)) return errno = EINVAL, -1;
  return sleep_until(after(*duration), SLALOM_PLACE(), rest) ? 0 : -1;
}
SLALOM_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  if (!runtime().controls()) return SLALOM_REAL(clock_nanosleep)(clock, flags, time, rest);
  if (!valid(clock) || !valid(time)) return EINVAL;
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  const uint64_t until = absolute ? from_clock(clock, *time) : after(*time);
  return sleep_until(until, SLALOM_PLACE(), absolute ? nullptr : rest) ? 0 : EINTR;
}
SLALOM_EXPORT int usleep(useconds_t duration) {
  if (!runtime().controls()) return SLALOM_REAL(usleep)(duration);
  const timespec time{duration / 1'000'000, static_cast<long>(duration % 1'000'000) * 1000};
  return sleep_until(after(time), SLALOM_PLACE()) ? 0 : -1;
}
SLALOM_EXPORT unsigned sleep(unsigned duration) {
  if (!runtime().controls()) return SLALOM_REAL(sleep)(duration);
  timespec rest{};
  sleep_until(after({static_cast<time_t>(duration), 0}), SLALOM_PLACE(), &rest);
  return static_cast<unsigned>(rest.tv_sec + (rest.tv_nsec != 0));
}
SLALOM_EXPORT int thrd_sleep(const timespec* duration, timespec* rest) {
  if (!runtime().controls()) return SLALOM_REAL(thrd_sleep)(duration, rest);
  if (!valid(duration)) return -2;
  return sleep_until(after(*duration), SLALOM_PLACE(), rest) ? 0 : -1;
}

SLALOM_EXPORT int sched_yield() noexcept {
  if (!runtime().controls()) return SLALOM_REAL(sched_yield)();
  runtime().pass(OpKind::Yield, SLALOM_PLACE(), true);
  return 0;
}
SLALOM_EXPORT void thrd_yield() {
  if (!runtime().controls()) return SLALOM_REAL(thrd_yield)();
  runtime().pass(OpKind::Yield, SLALOM_PLACE(), true);
}
