#include "vm/guests/linux/linux_traits.h"

namespace slalom::vm {
namespace {

constexpr std::string_view kFailed[] = {"BUG: kernel NULL pointer",
                                        "BUG: unable to handle",
                                        "Oops:",
                                        "general protection fault",
                                        "kernel BUG at",
                                        "Kernel panic",
                                        "divide error:",
                                        "stack-protector:",
                                        "BUG: scheduling while atomic",
                                        "invalid opcode:",
                                        "double fault:"};
constexpr std::string_view kTraced[] = {"Call Trace:"}, kReported[] = {"---[ end "},
                           kReportedByCheck[] = {"</TASK>"};
constexpr std::string_view kTimedWaits[] = {"process_timeout", "hrtimer_wakeup"};
constexpr std::string_view kWaitingFunctions[] = {"schedule",
                                                  "__schedule",
                                                  "__mutex_",
                                                  "mutex_",
                                                  "rwsem_",
                                                  "down_",
                                                  "__down",
                                                  "wait_",
                                                  "__wait_",
                                                  "rt_mutex_",
                                                  "prepare_to_wait",
                                                  "finish_wait",
                                                  "ww_mutex_",
                                                  "do_wait_for_common",
                                                  "io_schedule",
                                                  "usleep_",
                                                  "msleep",
                                                  "__switch_to",
                                                  "osq_",
                                                  "_raw_",
                                                  "native_queued",
                                                  "queued_",
                                                  "__pv_queued"};
constexpr GuestTraits kLinux{.code = {0xffff'ffff'8000'0000, ~uint64_t{0}},
                             .entry_stacks = {0xffff'fe00'0000'0000, 0xffff'fe7f'ffff'ffff},
                             .stacks = {.size = 16384},
                             .timer_vector = 0xec,
                             .first_ipi = kFirstIpiVector,
                             .failed = kFailed,
                             .traced = kTraced,
                             .reported = kReported,
                             .reported_by_check = kReportedByCheck,
                             .waiting_functions = kWaitingFunctions,
                             .timed_waits = kTimedWaits};

}  // namespace

const GuestTraits& linux_traits() {
  return kLinux;
}

}  // namespace slalom::vm
