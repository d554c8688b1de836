#include "report/kernels/kernel_relevance.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

namespace slalom {
namespace {

// Memory that more functions than this use (preemption counts, the current task) says nothing about one of
// them.
constexpr size_t kMostFunctions = 8;
constexpr size_t kNoAccess = ~size_t{0};

// Prefixes of names, without leading underscores.
constexpr std::string_view kPrefixes[] = {
    // entry and exit, interrupts
    "asm_", "common_interrupt", "do_softirq", "do_syscall_64", "entry_", "error_entry", "error_return",
    "exit_to_user", "fpregs_", "handle_edge", "handle_irq", "handle_level", "handle_softirq", "irq_",
    "irqentry_", "irqtime_", "native_irq", "paranoid_", "restore_regs", "ret_from_", "softirq_", "switch_fpu",
    "switch_mm", "switch_to", "syscall_", "sysvec_", "tasklet_",
    // scheduler
    "account_", "acct_", "activate_task", "arch_scale", "calc_global", "calc_load", "check_preempt",
    "cond_resched", "context_switch", "cpuacct_", "cpumask_", "deactivate_task", "dequeue_", "dl_",
    "enqueue_", "finish_task_switch", "perf_", "pick_next", "place_entity", "preempt_", "psi_", "put_prev",
    "raise_softirq", "raw_spin_rq", "resched_", "rq_", "sched_", "schedule", "scheduler_", "select_task_rq",
    "set_next_", "task_tick", "trigger_load", "try_to_wake_up", "ttwu_", "update_cfs", "update_curr",
    "update_load", "update_min_vruntime", "update_rq", "update_rt", "update_sd", "update_tg",
    "wakeup_preempt", "x2apic_",
    // time
    "apic_", "clockevents_", "do_timer", "hrtimer_", "ktime_", "lapic_", "native_apic", "native_sched_clock",
    "ntp_", "profile_tick", "read_tsc", "run_local_timers", "run_posix", "run_timer", "second_overflow",
    "tick_", "timekeeping_", "timerqueue_", "update_fast_timekeeper", "update_process_times",
    "update_vsyscall", "update_wall_time", "vdso_", "xtime_",
    // RCU, locks, counters
    "call_rcu", "down_", "lock_page", "lockref_", "mutex_", "native_queued", "note_gp_changes", "osq_",
    "percpu_counter", "pv_queued", "queued_", "raw_read_", "raw_spin_", "raw_write_", "rcu_", "refcount_",
    "rwsem_", "srcu_", "up_read", "up_write",
    // memory
    "add_to_pagevec", "alloc_pages", "cache_from_obj", "cgroup_", "count_memcg", "css_", "drain_", "folio_",
    "free_one_page", "free_pcppages", "free_unref", "get_mem_cgroup", "get_obj_cgroup", "get_page_from",
    "inc_node", "inc_zone", "kfree", "kmalloc", "kmem_cache_", "lru_", "mem_cgroup_", "memcg_", "mod_lruvec",
    "mod_memcg", "mod_node", "mod_objcg", "mod_zone", "obj_cgroup_", "pagevec_", "prep_new_page", "refill_",
    "rmqueue", "slab_", "slub_", "this_cpu_", "unfreeze_", "virt_addr_valid", "vm_event", "workingset_",
    "zone_",
    // reports of failures
    "console_", "crash_", "die", "dump_", "exc_", "fixup_", "format_decode", "handle_bug", "io_serial",
    "kallsyms", "number", "oops_", "page_fault_oops", "prb_", "print", "report_bug", "serial8250", "show_",
    "sprint_", "string", "symbol_", "uart_", "univ8250", "unwind_", "vprintk", "vscnprintf", "vsnprintf",
    "wait_for_lsr", "warn", "wake_up_klogd"};

// Functions by which CPUs ask each other to call a function. The called function is worth a row; these are
// not.
constexpr std::string_view kCrossCalls[] = {"call_function_single", "csd_",
                                            "flush_smp_call",       "generic_exec_single",
                                            "generic_smp_call",     "smp_call_function"};

bool begins_with_any(std::string_view function, std::span<const std::string_view> prefixes) {
  function.remove_prefix(std::min(function.find_first_not_of('_'), function.size()));
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return function.starts_with(prefix); });
}

// Two bytes of memory: kernels place unrelated fields side by side.
struct Word {
  AgentId user;  // the first user
  bool several = false, written = false, atomic = false, set_by_others = false;
  bool carries_calls = false;  // from one CPU to another
  AgentId holder;              // the agent that last changed it atomically
  size_t last_write = kNoAccess, last_read = kNoAccess;
  std::array<uint32_t, kMostFunctions> functions{};
  size_t function_count = 0;  // a larger number than fits means many

  bool is_lock() const { return atomic && !set_by_others; }
  bool is_shared() const { return several && written; }
};

// Private variables of each CPU.
constexpr std::string_view kBookkeeping[] = {"__preempt_count", "pcpu_hot",     "hardirq_stack",
                                             "irq_stat",        "current_task", "irq_regs"};

class Finder {
 public:
  Finder(const KernelTrace& trace, const Names& names)
      : trace_(trace), names_(names), result_(trace.operations.size(), Relevance::None) {}

  std::vector<Relevance> find() {
    for (const KernelOperation& operation : trace_.operations)
      if (is_memory_access(operation)) learn(operation);
    for (size_t i = 0; i < trace_.operations.size(); ++i)
      if (is_memory_access(trace_.operations[i])) judge(i);
    return std::move(result_);
  }

 private:
  struct Function {
    uint32_t number = 0;
    bool infrastructure = false, module = false, cross_call = false;
  };

  static bool is_memory_access(const KernelOperation& operation) {
    return operation.access != nullptr && is_memory(operation.access->op());
  }

  const Function& function(Place pc) {
    const auto [known, added] = functions_.try_emplace(pc);
    if (added) {
      const std::string place = names_.place(pc);
      const std::string name(function_of(place));
      known->second.number = numbers_.try_emplace(name, static_cast<uint32_t>(numbers_.size())).first->second;
      known->second.infrastructure = is_infrastructure(name);
      known->second.module = name.find(':') != std::string::npos;
      known->second.cross_call = !known->second.module && begins_with_any(name, kCrossCalls);
    }
    return known->second;
  }

  template <typename Visit>
  void each_word(const Access& access, Visit visit) {
    const uint64_t start = access.physical != 0 ? uint64_t{access.physical} : access.address().raw;
    const uint64_t size = std::max<uint64_t>(access.size, 1);
    for (uint64_t word = start >> 1; word <= (start + size - 1) >> 1; ++word) visit(words_[word]);
  }

  void learn(const KernelOperation& operation) {
    const Access& access = *operation.access;
    const Function& by = function(access.pc());
    each_word(access, [&](Word& word) {
      if (!word.user) word.user = operation.agent;
      word.several |= word.user != operation.agent;
      word.written |= operation.writes();
      word.carries_calls |= by.cross_call;
      if (is_atomic(access.op())) {
        word.atomic = true;
        word.holder = operation.agent;
      } else if (operation.writes()) {
        word.set_by_others |= word.holder != operation.agent;
      }
      const auto end = word.functions.begin() +
                       static_cast<ptrdiff_t>(std::min(word.function_count, word.functions.size()));
      if (word.function_count > kMostFunctions || std::find(word.functions.begin(), end, by.number) != end)
        return;
      if (word.function_count < kMostFunctions) word.functions[word.function_count] = by.number;
      ++word.function_count;
    });
  }

  void judge(size_t i) {
    const KernelOperation& operation = trace_.operations[i];
    const Function& by = function(operation.access->pc());
    each_word(*operation.access, [&](Word& word) {
      if (!word.is_shared()) return;
      const bool writes = operation.writes();
      // The author of a module wants to see the module's own atomic operations.
      if (!by.infrastructure && (!word.carries_calls || asks_for_a_call(operation)) &&
          !is_bookkeeping(operation.access->address()) &&
          (by.module || (!word.is_lock() && word.function_count <= kMostFunctions))) {
        result_[i] = std::max(result_[i], Relevance::Shared);
        neighbours(i, word.last_write);
        if (writes) neighbours(i, word.last_read);
      }
      (writes ? word.last_write : word.last_read) = i;
    });
  }

  // Returns whether the operation gives another CPU a module's function to call.
  bool asks_for_a_call(const KernelOperation& operation) const {
    return operation.writes() && operation.access->size == 8 &&
           names_.place(Place{operation.access->value}).find(':') != std::string::npos;
  }

  // Returns whether it is private data of a CPU. An interrupt on that CPU uses it, too.
  bool is_bookkeeping(ObjectId address) {
    const auto [known, added] = bookkeeping_.try_emplace(address.raw, false);
    if (added) known->second = slalom::is_bookkeeping(names_.object(address));
    return known->second;
  }

  void neighbours(size_t i, size_t before) {
    if (before == kNoAccess || trace_.operations[before].agent == trace_.operations[i].agent) return;
    result_[i] = Relevance::Communicates;
    if (result_[before] != Relevance::None) result_[before] = Relevance::Communicates;
  }

  const KernelTrace& trace_;
  const Names& names_;
  std::vector<Relevance> result_;
  std::map<Place, Function> functions_;
  std::map<std::string, uint32_t> numbers_;
  std::unordered_map<uint64_t, Word> words_;        // never iterated over
  std::unordered_map<uint64_t, bool> bookkeeping_;  // by address; never iterated over
};

}  // namespace

std::string_view function_of(std::string_view place) {
  return place.substr(0, place.find('+'));
}

bool is_infrastructure(std::string_view function) {
  return function.find(':') == std::string_view::npos && begins_with_any(function, kPrefixes);
}

bool is_bookkeeping(std::string_view variable) {
  return std::ranges::any_of(kBookkeeping, [&](auto prefix) { return variable.starts_with(prefix); });
}

std::vector<Relevance> find_relevance(const KernelTrace& trace, const Names& names) {
  return Finder(trace, names).find();
}

}  // namespace slalom
