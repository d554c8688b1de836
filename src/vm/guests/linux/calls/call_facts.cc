#include "vm/guests/linux/calls/call_facts.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <initializer_list>

namespace slalom::vm {
namespace {

bool is_one_of(uint32_t number, std::initializer_list<uint32_t> those) {
  return std::ranges::find(those, number) != those.end();
}

bool is_constant(const Operand& operand, uint64_t value) {
  return operand.kind == Operand::Kind::Constant && operand.value == value;
}

bool is_constant_size(const Operand& operand) {
  return operand.kind == Operand::Kind::Constant && operand.value <= UINT32_MAX;
}

// A timeout in milliseconds, as an int. A negative one never expires, and zero does not wait.
bool runs_out(const Operand& milliseconds) {
  return milliseconds.kind != Operand::Kind::Constant || static_cast<int32_t>(milliseconds.value) > 0;
}

// A timeout as a structure of two words. A null pointer never expires, and zero does not wait.
bool structure_runs_out(const CallProgram& flow, const Operand& time) {
  constexpr uint64_t kSize = 16;
  if (is_constant(time, 0)) return false;
  if (time.kind != Operand::Kind::Pointer || time.list != CallList::Own ||
      time.value + kSize > flow.data.size())
    return true;
  for (const CallStep& step : flow.steps)
    if (step.changes_data() && step.list == CallList::Own && step.number < time.value + kSize &&
        time.value < step.number + step.size)
      return true;
  const auto begin = flow.data.begin() + static_cast<ptrdiff_t>(time.value);
  return std::any_of(begin, begin + kSize, [](uint8_t byte) { return byte != 0; });
}

bool waits_with_timeout(const CallStep& futex) {
  if (is_constant(futex.operands[3], 0)) return false;
  if (futex.operands[1].kind != Operand::Kind::Constant) return true;
  return is_one_of(static_cast<uint32_t>(futex.operands[1].value) & FUTEX_CMD_MASK,
                   {FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2});
}

// The calls of a flow without its stores, since results are numbered by call.
std::vector<const CallStep*> calls_of(const CallProgram& flow) {
  std::vector<const CallStep*> calls;
  for (const CallStep& step : flow.steps)
    if (step.kind == CallStep::Kind::Call) calls.push_back(&step);
  return calls;
}

}  // namespace

bool depends_on_time(const CallProgram& flow, const CallStep& call) {
  switch (call.number) {
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_alarm:
    case SYS_setitimer:
    case SYS_timer_create:
    case SYS_timer_settime:
    case SYS_timerfd_create:
    case SYS_timerfd_settime:
      return true;
    case SYS_poll:
      return runs_out(call.operands[2]);
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      return runs_out(call.operands[3]);
    case SYS_ppoll:
    case SYS_rt_sigtimedwait:
      return structure_runs_out(flow, call.operands[2]);
    case SYS_epoll_pwait2:
      return structure_runs_out(flow, call.operands[3]);
    case SYS_select:
    case SYS_pselect6:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
      return structure_runs_out(flow, call.operands[4]);
    case SYS_futex:
      return waits_with_timeout(call);
    case SYS_semtimedop:
    case SYS_futex_waitv:
      return !is_constant(call.operands[3], 0);
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
    case SYS_recvmmsg:
      return !is_constant(call.operands[4], 0);
    case SYS_setsockopt:
      return is_constant(call.operands[1], SOL_SOCKET) &&
             (is_constant(call.operands[2], SO_RCVTIMEO) || is_constant(call.operands[2], SO_SNDTIMEO));
    default:
      return false;
  }
}

bool tells_time(const CallStep& call) {
  if (call.number == SYS_wait4) return !is_constant(call.operands[3], 0);  // resource usage
  if (call.number == SYS_waitid) return !is_constant(call.operands[4], 0);
  return is_one_of(call.number,
                   {SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat, SYS_statx, SYS_gettimeofday, SYS_time,
                    SYS_clock_gettime, SYS_clock_getres, SYS_adjtimex, SYS_getitimer, SYS_timer_gettime,
                    SYS_timerfd_gettime, SYS_getrusage, SYS_times, SYS_sysinfo});
}

bool sends_signal(const CallStep& call) {
  return is_one_of(call.number, {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
                                 SYS_pidfd_send_signal});
}

ResultIs result_is(const CallStep& call) {
  if (is_one_of(call.number, {SYS_fork, SYS_vfork, SYS_clone, SYS_clone3})) return ResultIs::NewProcess;
  if (is_one_of(call.number, {SYS_wait4, SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgid, SYS_getpgrp,
                              SYS_getsid, SYS_setsid, SYS_set_tid_address}))
    return ResultIs::Process;
  if (call.number == SYS_time || call.number == SYS_times) return ResultIs::Time;
  if (call.number == SYS_getdents || call.number == SYS_getdents64) return ResultIs::Listing;
  if (call.number == SYS_fcntl &&
      (is_constant(call.operands[1], F_DUPFD) || is_constant(call.operands[1], F_DUPFD_CLOEXEC)))
    return ResultIs::NewDescriptor;
  return is_one_of(call.number, {SYS_open,          SYS_openat,
                                 SYS_openat2,       SYS_open_by_handle_at,
                                 SYS_creat,         SYS_dup,
                                 SYS_socket,        SYS_accept,
                                 SYS_accept4,       SYS_epoll_create,
                                 SYS_epoll_create1, SYS_eventfd,
                                 SYS_eventfd2,      SYS_signalfd,
                                 SYS_signalfd4,     SYS_timerfd_create,
                                 SYS_inotify_init,  SYS_inotify_init1,
                                 SYS_fanotify_init, SYS_memfd_create,
                                 SYS_mq_open,       SYS_pidfd_open,
                                 SYS_pidfd_getfd,   SYS_perf_event_open,
                                 SYS_userfaultfd,   SYS_io_uring_setup,
                                 SYS_fsopen,        SYS_fsmount,
                                 SYS_fspick,        SYS_open_tree})
             ? ResultIs::NewDescriptor
             : ResultIs::Value;
}

std::vector<DataObject> names_in_data(const CallProgram& flow) {
  const std::vector<const CallStep*> calls = calls_of(flow);
  std::vector<DataObject> names;
  for (const CallStep* call : calls) {
    // A listing is not atomic: entries that come or go meanwhile may be in it or not.
    if (result_is(*call) == ResultIs::Listing && call->operands[1].kind == Operand::Kind::Pointer &&
        call->operands[1].list == CallList::Own && is_constant_size(call->operands[2]))
      names.push_back(
          {static_cast<uint32_t>(call->operands[1].value), static_cast<uint32_t>(call->operands[2].value)});
    const bool pair = call->number == SYS_socketpair;
    if (!pair && call->number != SYS_pipe && call->number != SYS_pipe2) continue;
    const Operand& where = call->operands[pair ? 3 : 0];
    if (where.kind == Operand::Kind::Pointer && where.list == CallList::Own)
      names.push_back({static_cast<uint32_t>(where.value), 8});
  }
  const auto is_name = [&](const Operand& operand) {
    if (operand.list != CallList::Own) return false;  // prepared once, so the same in all executions
    if (operand.kind == Operand::Kind::Result)
      return operand.value < calls.size() && result_is(*calls[operand.value]) != ResultIs::Value;
    return operand.kind == Operand::Kind::Load && std::ranges::any_of(names, [&](const DataObject& name) {
             return operand.value < name.offset + name.size && name.offset < operand.value + operand.size;
           });
  };
  for (const CallStep& step : flow.steps)
    if (step.kind == CallStep::Kind::Store && step.list == CallList::Own && is_name(step.operands[0]))
      names.push_back({step.number, step.size});
  return names;
}

}  // namespace slalom::vm
