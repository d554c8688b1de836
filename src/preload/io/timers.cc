// Timers: alarm, setitimer, timer_create and timerfd. Each is an agent of its own, whose only operation is to
// fire. The schedule decides when, as with everything that has a time limit. In that operation the timer
// sends its signal, calls its function, or makes its descriptor readable.
//
// A timer that is not armed counts as an agent that has ended. A repeating timer, and one whose signal would
// only end the program (a watchdog), fires later times only if no other agent can run. Otherwise it could
// fire for ever.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "preload/io/channels.h"
#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/signals.h"
#include "preload/sync/threads.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kMostTimers = 64;
constexpr uint32_t kAlarm = 0;       // the process's ITIMER_REAL
constexpr uint32_t kEagerTimes = 3;  // number of times that a repeating timer may fire at any moment
constexpr uint64_t kSecond = 1'000'000'000;

struct Timer {
  bool used;
  bool made;                 // the entry has been used
  int signal;                // signal to send; 0 if none
  void (*function)(sigval);  // or function to call
  int descriptor;            // or descriptor to make readable; 0 if none
  sigval value;
  clockid_t clock;              // clock of its absolute times
  uint64_t deadline, interval;  // kNever if not armed
  uint64_t pc;                  // place where it was armed
  uint32_t target;              // agent that gets the signal; kNoAgent for the process
  uint32_t agent;               // kNoAgent if never armed
  uint32_t fired;
  bool firing;  // the agent is busy with the effects of firing
};
constinit Timer timers[kMostTimers] = {};

uint64_t object_of(const Timer& timer) {
  return kTimerObjects + static_cast<uint64_t>(&timer - timers);
}

void fire(Timer& timer) {
  Runtime& rt = runtime();
  const Timer now = timer;  // a copy, because the timer may be deleted and its entry reused meanwhile
  rt.tell(OpKind::TimerFire, object_of(timer), 1);
  if (timer.descriptor != 0) {  // in the same operation, because the descriptor may be closed later
    const uint64_t once = 1;
    raw_syscall(SYS_write, timer.descriptor, reinterpret_cast<long>(&once), sizeof once);
    rt.tell(OpKind::SemPost, slalom::preload::object_of(timer.descriptor), 1);
  }
  rt.retire(true);
  timer.deadline = timer.interval == 0 ? kNever : rt.now() + timer.interval;
  rt.me().idle_deadline = ++timer.fired >= kEagerTimes;
  timer.firing = true;
  if (now.function != nullptr) now.function(now.value);
  const Cause cause{&timer == &timers[kAlarm] ? SI_KERNEL : SI_TIMER, now.value};
  if (now.signal != 0 && now.target == kNoAgent) signal_process(now.signal, now.pc, cause);
  if (now.signal != 0 && now.target != kNoAgent) queue_signal_to(now.target, now.signal, now.pc, cause);
  if (timer.agent == rt.self()) timer.firing = false;
}

void* run_timer(void* argument) {
  Timer& timer = *static_cast<Timer*>(argument);
  Runtime& rt = runtime();
  for (;;) {
    if (timer.deadline == kNever || timer.agent != rt.self()) {
      rt.rest();
      continue;
    }
    rt.arrive(OpKind::TimerFire, object_of(timer), timer.pc, Need::Timer, nullptr, timer.deadline);
    if (timer.deadline != kNever) fire(timer);
  }
}

uint64_t nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

// Setting a timer discards the expirations that could be read from its descriptor. Event loops that never
// read it rely on that.
void forget_expirations(int descriptor) {
  pollfd readable{descriptor, POLLIN, 0};
  uint64_t count = 0;
  if (raw_syscall(SYS_poll, reinterpret_cast<long>(&readable), 1, 0) == 1)
    raw_syscall(SYS_read, descriptor, reinterpret_cast<long>(&count), sizeof count);
  runtime().tell(OpKind::SemWait, slalom::preload::object_of(descriptor), 1);
}

// Arms the timer; a `deadline` of kNever disarms it.
void set(Timer& timer, uint64_t deadline, uint64_t interval, uint64_t pc) {
  Runtime& rt = runtime();
  const bool armed = deadline != kNever;
  rt.arrive(armed ? OpKind::TimerArm : OpKind::TimerCancel, object_of(timer), pc);
  timer.deadline = deadline;
  timer.interval = interval;
  timer.pc = pc;
  timer.fired = 0;
  rt.tell(armed ? OpKind::TimerArm : OpKind::TimerCancel, object_of(timer), armed ? 0 : 1);
  if (timer.descriptor != 0) forget_expirations(timer.descriptor);
  rt.retire();
  if (armed && timer.agent == kNoAgent) {
    timer.agent = rt.add_agent(pc);
    if (timer.agent == kNoAgent) return rt.note_uncontrolled(Uncontrolled::Timer);
    Agent& agent = rt.agent(timer.agent);
    agent.start = run_timer;
    agent.argument = &timer;
    agent.detached = true;
    agent.blocked = UINT64_MAX;
    if (start_thread(timer.agent, nullptr, agent.thread) != 0)
      rt.slot(timer.agent).state = Slot::State::Ended;
  } else if (timer.agent != kNoAgent && !timer.firing) {
    rt.agent(timer.agent).deadline = deadline;
    rt.set_ended(timer.agent, !armed);
  }
  if (timer.agent != kNoAgent)
    rt.agent(timer.agent).idle_deadline = timer.signal != 0 && !handles(timer.signal);
}

void set(Timer& timer, const itimerspec& wanted, bool absolute, uint64_t pc) {
  const bool none = wanted.it_value.tv_sec == 0 && wanted.it_value.tv_nsec == 0;
  const uint64_t deadline = absolute ? from_clock(timer.clock, wanted.it_value) : after(wanted.it_value);
  set(timer, none ? kNever : deadline, nanoseconds(wanted.it_interval), pc);
}

itimerspec left(const Timer& timer) {
  const uint64_t now = runtime().now();
  const uint64_t rest = timer.deadline == kNever ? 0 : timer.deadline > now ? timer.deadline - now : 1;
  const auto split = [](uint64_t time) {
    return timespec{static_cast<time_t>(time / kSecond), static_cast<long>(time % kSecond)};
  };
  return {split(timer.interval), split(rest)};
}

Timer* add_timer(clockid_t clock) {
  for (uint32_t i = kAlarm + 1; i < kMostTimers; ++i) {
    if (timers[i].used) continue;
    // The agent of the entry's previous timer.
    const uint32_t agent = timers[i].made ? timers[i].agent : kNoAgent;
    timers[i] = {};
    timers[i].used = timers[i].made = true;
    timers[i].clock = clock;
    timers[i].deadline = kNever;
    timers[i].target = kNoAgent;
    timers[i].agent = agent;
    return &timers[i];
  }
  runtime().note_uncontrolled(Uncontrolled::Timer);
  return nullptr;
}

Timer& alarm_timer() {
  Timer& timer = timers[kAlarm];
  if (!timer.used) {
    timer = {};
    timer.used = true;
    timer.signal = SIGALRM;
    timer.deadline = kNever;
    timer.target = kNoAgent;
    timer.agent = kNoAgent;
  }
  return timer;
}

// Frees the entry. It keeps the agent for the next timer, unless that is still busy.
void give_back(Timer& timer) {
  timer.used = false;
  if (timer.firing) timer.agent = kNoAgent;
}

Timer* find(timer_t id) {
  const auto index = reinterpret_cast<uintptr_t>(id);
  return index > kAlarm && index < kMostTimers && timers[index].used ? &timers[index] : nullptr;
}
Timer* find_descriptor(int descriptor) {
  for (Timer& timer : timers)
    if (timer.used && timer.descriptor != 0 && timer.descriptor == descriptor) return &timer;
  return nullptr;
}

bool valid(const itimerspec* wanted) {
  return wanted != nullptr && slalom::preload::valid(&wanted->it_value) &&
         slalom::preload::valid(&wanted->it_interval);
}

}  // namespace

void forget_timer(int descriptor) {
  Timer* timer = find_descriptor(descriptor);
  if (timer == nullptr) return;
  if (const int other = other_name(descriptor); other >= 0) {
    timer->descriptor = other;
    return;
  }
  Runtime& rt = runtime();
  timer->deadline = kNever;
  rt.tell(OpKind::TimerCancel, object_of(*timer), 1);
  if (timer->agent != kNoAgent) rt.set_ended(timer->agent, true);
  give_back(*timer);
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT unsigned alarm(unsigned seconds) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(alarm)(seconds);
  Timer& timer = alarm_timer();
  const itimerspec before = left(timer);
  const timespec first{static_cast<time_t>(seconds), 0};
  set(timer, {{0, 0}, first}, false, SLALOM_PLACE());
  return static_cast<unsigned>(before.it_value.tv_sec + (before.it_value.tv_nsec != 0));
}
SLALOM_EXPORT useconds_t ualarm(useconds_t first, useconds_t interval) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(ualarm)(first, interval);
  constexpr useconds_t kMillion = 1'000'000;
  const auto split = [](useconds_t time) {
    return timespec{static_cast<time_t>(time / kMillion), static_cast<long>(time % kMillion) * 1000};
  };
  Timer& timer = alarm_timer();
  const itimerspec before = left(timer);
  set(timer, {split(interval), split(first)}, false, SLALOM_PLACE());
  return static_cast<useconds_t>(before.it_value.tv_sec) * kMillion +
         static_cast<useconds_t>(before.it_value.tv_nsec / 1000);
}
SLALOM_EXPORT int setitimer(__itimer_which_t which, const itimerval* wanted, itimerval* before) noexcept {
  if (!runtime().controls() || which != ITIMER_REAL || wanted == nullptr) {
    if (runtime().controls()) runtime().note_uncontrolled(Uncontrolled::Timer);
    return SLALOM_REAL(setitimer)(which, wanted, before);
  }
  Timer& timer = alarm_timer();
  const itimerspec rest = left(timer);
  if (before != nullptr)
    *before = {{rest.it_interval.tv_sec, rest.it_interval.tv_nsec / 1000},
               {rest.it_value.tv_sec, rest.it_value.tv_nsec / 1000}};
  set(timer,
      {{wanted->it_interval.tv_sec, wanted->it_interval.tv_usec * 1000},
       {wanted->it_value.tv_sec, wanted->it_value.tv_usec * 1000}},
      false, SLALOM_PLACE());
  return 0;
}

SLALOM_EXPORT int timer_create(clockid_t clock, sigevent* event, timer_t* id) noexcept {
  runtime().end_set_up();
  if (!runtime().controls()) return SLALOM_REAL(timer_create)(clock, event, id);
  if (!valid(clock)) return errno = EINVAL, -1;
  uint32_t target = kNoAgent;
  if (event != nullptr && event->sigev_notify == SIGEV_THREAD_ID) {
    target = static_cast<uint32_t>(event->_sigev_un._tid - kPid);
    if (target >= runtime().agent_count() || runtime().ended(target)) return errno = EINVAL, -1;
  }
  Timer* timer = add_timer(clock);
  if (timer == nullptr) return errno = EAGAIN, -1;
  if (event == nullptr) {
    timer->signal = SIGALRM;
  } else if (event->sigev_notify == SIGEV_THREAD) {
    timer->function = event->sigev_notify_function;
    timer->value = event->sigev_value;
  } else if (event->sigev_notify != SIGEV_NONE) {
    timer->signal = event->sigev_signo;
    timer->value = event->sigev_value;
    timer->target = target;
  }
  *id = reinterpret_cast<timer_t>(static_cast<uintptr_t>(timer - timers));
  return 0;
}
SLALOM_EXPORT int timer_settime(timer_t id, int flags, const itimerspec* wanted,
                                itimerspec* before) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(timer_settime)(id, flags, wanted, before);
  Timer* timer = find(id);
  if (timer == nullptr || !valid(wanted)) return errno = EINVAL, -1;
  if (before != nullptr) *before = left(*timer);
  set(*timer, *wanted, (flags & TIMER_ABSTIME) != 0, SLALOM_PLACE());
  return 0;
}
SLALOM_EXPORT int timer_gettime(timer_t id, itimerspec* rest) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(timer_gettime)(id, rest);
  const Timer* timer = find(id);
  if (timer == nullptr) return errno = EINVAL, -1;
  *rest = left(*timer);
  return 0;
}
SLALOM_EXPORT int timer_getoverrun(timer_t id) noexcept {
  return runtime().controls() ? 0 : SLALOM_REAL(timer_getoverrun)(id);
}
SLALOM_EXPORT int timer_delete(timer_t id) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(timer_delete)(id);
  Timer* timer = find(id);
  if (timer == nullptr) return errno = EINVAL, -1;
  set(*timer, kNever, 0, SLALOM_PLACE());
  give_back(*timer);
  return 0;
}

// A timerfd is an event counter here, which is read in the same way.
SLALOM_EXPORT int timerfd_create(clockid_t clock, int flags) noexcept {
  runtime().begin_executions_here();
  if (!runtime().controls()) return SLALOM_REAL(timerfd_create)(clock, flags);
  static_assert(int{TFD_NONBLOCK} == int{EFD_NONBLOCK} && int{TFD_CLOEXEC} == int{EFD_CLOEXEC});
  if (!valid(clock)) return errno = EINVAL, -1;
  Timer* timer = add_timer(clock);
  if (timer == nullptr) return errno = EMFILE, -1;
  timer->descriptor = eventfd(0, flags);
  return timer->descriptor;
}
SLALOM_EXPORT int timerfd_settime(int descriptor, int flags, const itimerspec* wanted,
                                  itimerspec* before) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(timerfd_settime)(descriptor, flags, wanted, before);
  Timer* timer = find_descriptor(descriptor);
  if (timer == nullptr || !valid(wanted)) return errno = EINVAL, -1;
  if (before != nullptr) *before = left(*timer);
  set(*timer, *wanted, (flags & TFD_TIMER_ABSTIME) != 0, SLALOM_PLACE());
  return 0;
}
SLALOM_EXPORT int timerfd_gettime(int descriptor, itimerspec* rest) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(timerfd_gettime)(descriptor, rest);
  const Timer* timer = find_descriptor(descriptor);
  if (timer == nullptr) return errno = EINVAL, -1;
  *rest = left(*timer);
  return 0;
}
