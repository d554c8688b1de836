#include "detect/kernels/kernel_race_report.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace slalom {
namespace {

using Race = KernelRaceState::Race;
using Record = KernelRaceState::Record;

constexpr size_t kMostOthers = 20;  // pairs that a report lists after its first

bool in_module(const std::string& function) {
  return function.find(':') != std::string::npos;
}

// Returns whether both sides have the same address and size, so that their values can be compared.
bool same_range(const Race& race) {
  return race.first.address == race.second.address && race.first.size == race.second.size;
}

// Returns why a race may be harmless; empty if there is no sign of that.
std::string_view benign(const Race& race) {
  if (!same_range(race)) return {};
  if (race.first.writes() && race.second.writes())
    return race.first.value == race.second.value ? "both write the same value" : std::string_view{};
  const bool flags = race.first.value <= 1 && race.second.value <= 1;
  return flags ? "one side only tests a flag" : std::string_view{};
}

using Marking = Names::Marking;

std::string_view marking_text(Marking marking) {
  switch (marking) {
    case Marking::Unknown:
      return "";
    case Marking::Plain:
      return ", plain";
    case Marking::Marked:
      return ", marked";
  }
  return "";
}

struct Named {
  const Race* race = nullptr;
  Marking first = Marking::Unknown, second = Marking::Unknown;
  std::string first_place, second_place;
  std::string low, high;  // functions
  size_t group = 0;

  // The authors know of a race whose two sides they have marked.
  bool intended() const { return first == Marking::Marked && second == Marking::Marked; }
  int rank() const {  // a lower rank says more
    const int modules = (in_module(low) ? 1 : 0) + (in_module(high) ? 1 : 0);
    return (intended() ? 100 : 0) + 4 * (2 - modules) + (race->simultaneous ? 0 : 2) +
           (benign(*race).empty() ? 0 : 1);
  }
  auto key() const { return std::tie(low, high, first_place, second_place); }
  bool operator<(const Named& other) const {
    return rank() != other.rank() ? rank() < other.rank() : key() < other.key();
  }
};

// Everything called from these functions belongs to them, whatever its name: helpers, list and tree
// functions.
constexpr std::string_view kSubsystems[] = {"__schedule",
                                            "schedule_idle",
                                            "scheduler_tick",
                                            "load_balance",
                                            "newidle_balance",
                                            "rebalance_domains",
                                            "run_rebalance_domains",
                                            "try_to_wake_up",
                                            "tick_",
                                            "update_process_times",
                                            "update_wall_time",
                                            "timekeeping_",
                                            "rcu_core",
                                            "rcu_sched_clock_irq",
                                            "rcu_gp_",
                                            "vprintk",
                                            "_printk",
                                            "console_",
                                            "rwsem_down_",
                                            "rwsem_wake",
                                            "__mutex_lock",
                                            "mutex_lock",
                                            "osq_lock",
                                            "hrtimer_interrupt"};

// Addresses of the kernel's own statistics and clocks.
constexpr std::string_view kStatistics[] = {"jiffies",        "avenrun",      "tk_core",     "vm_node_stat",
                                            "vm_zone_stat",   "vm_event",     "runqueues",   "kernel_cpustat",
                                            "kstat",          "calc_load",    "total_forks", "nr_",
                                            "tick_cpu_sched", "last_jiffies", "rcu_state"};

std::vector<Named> wanted(std::span<const Race> races, const KernelRaceState& state, const Names& names,
                          KernelInternals& internals) {
  std::vector<Named> result;
  const auto is_internal = [&](const Record& record) {
    return internals.is_internal(record.pc, state.context.functions(record.where.path), record.address);
  };
  for (const Race& race : races) {
    if (is_internal(race.first) || is_internal(race.second)) continue;
    Named one{.race = &race,
              .first_place = names.place(race.first.pc),
              .second_place = names.place(race.second.pc),
              .low = {},
              .high = {}};
    one.low = function_name(one.first_place);
    one.high = function_name(one.second_place);
    if (one.high < one.low) std::swap(one.low, one.high);
    one.first = names.marking(race.first.pc, race.first.writes());
    one.second = names.marking(race.second.pc, race.second.writes());
    result.push_back(std::move(one));
  }
  return result;
}

// Numbers the groups. Each pair gets the number of the first pair of its group.
void group(std::vector<Named>& pairs) {
  std::vector<size_t> parent(pairs.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::map<uint64_t, size_t> places, cells;
  const auto join = [&](std::map<uint64_t, size_t>& known, uint64_t key, size_t i) {
    const size_t a = root(known.emplace(key, i).first->second), b = root(i);
    parent[std::max(a, b)] = std::min(a, b);
  };
  for (size_t i = 0; i < pairs.size(); ++i) {
    join(places, pairs[i].race->first.pc.raw, i);
    join(places, pairs[i].race->second.pc.raw, i);
    join(cells, pairs[i].race->cell, i);
  }
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i].group = root(i);
}

std::string side(const Record& record, Marking marking) {
  return fmt::format("{} of {} byte{}{}, value {:#x}", record.writes() ? "store" : "load", record.size,
                     record.size == 1 ? "" : "s", marking_text(marking), record.value);
}

std::string pair_text(const Named& pair) {
  const Race& race = *pair.race;
  std::string text = fmt::format("{} ({}) and {} ({})", pair.first_place, side(race.first, pair.first),
                                 pair.second_place, side(race.second, pair.second));
  if (race.simultaneous) text += ", simultaneously";
  if (const std::string_view why = benign(race); !why.empty())
    text += fmt::format("; perhaps benign: {}", why);
  return text;
}

}  // namespace

std::vector<std::string> KernelRaceOptions::kernel_internals() {
  return {// scheduler and idle
          "schedule", "__schedule", "sched_", "__sched_", "try_to_wake_up", "ttwu_", "wake_up_", "__wake_up",
          "select_task_rq", "update_rq_clock", "update_load", "update_curr", "enqueue_", "dequeue_",
          "pick_next_", "put_prev_", "set_next_", "check_preempt", "resched_", "scheduler_tick", "task_tick_",
          "finish_task_switch", "__switch_to", "newidle_balance", "load_balance", "cpuacct_", "psi_",
          "__update_load_avg", "update_sd_", "update_sg_", "update_group_", "find_busiest_", "find_idlest_",
          "calc_load", "set_task_cpu", "cpuidle_", "do_idle", "nohz_", "idle_cpu", "available_idle_cpu",
          "cpu_util", "active_load_balance", "rebalance_domains", "trigger_load_balance", "can_migrate_task",
          "migrate_task_rq", "detach_task", "detach_entity", "attach_task", "attach_entity", "place_entity",
          "remove_entity", "propagate_entity", "reweight_", "update_cfs_", "update_tg_", "update_idle_",
          "update_min_vruntime", "update_blocked_",
          // time
          "tick_", "timekeeping_", "ktime_", "update_wall_time", "update_vsyscall", "do_timer", "jiffies",
          "get_jiffies", "calc_global_load", "hrtimer_", "__hrtimer_", "run_timer_softirq", "__run_timers",
          "timer_", "get_next_timer", "clockevents_", "account_", "irqtime_", "update_process_times",
          // RCU
          "rcu_", "__rcu_", "call_rcu", "__call_rcu", "srcu_", "__srcu_", "note_gp_changes",
          // printk and consoles
          "printk", "_printk", "vprintk", "console_", "prb_", "desc_", "devkmsg_", "serial8250_", "uart_",
          "univ8250_", "wake_up_klogd", "irq_work_",
          // the allocators
          "kmem_cache_", "__kmem_cache_", "kmalloc", "__kmalloc", "kfree", "slab_", "__slab_", "___slab_",
          "get_partial", "__unfreeze_", "put_cpu_partial", "rmqueue", "__rmqueue", "free_unref_", "__free_",
          "free_pcp", "get_page_from_freelist", "__alloc_pages", "mod_zone_", "__mod_", "mod_node_",
          "vm_stat", "count_vm_", "__count_", "inc_node_", "dec_node_", "__inc_", "__dec_", "lru_",
          "refresh_cpu_vm", "percpu_counter_", "__percpu_counter_",
          // locks themselves, and calls between CPUs
          "osq_", "mutex_", "__mutex_", "rwsem_", "__rwsem_", "down_read", "down_write", "up_read",
          "up_write", "downgrade_write", "__down", "__up", "percpu_down", "percpu_up", "__percpu_",
          "rt_mutex_", "native_queued_", "queued_", "_raw_", "lockref_", "smp_call_", "generic_smp_",
          "flush_smp_", "__flush_smp_", "csd_", "flush_tlb_", "native_flush_tlb", "switch_mm", "leave_mm"};
}

bool KernelInternals::is_ignored(Place pc) {
  uint8_t& known = ignored_[pc.raw];
  if (known == 0) {
    const std::string function = function_name(names_.place(pc));
    known =
        std::ranges::any_of(ignore_, [&](const std::string& prefix) { return function.starts_with(prefix); })
            ? 2
            : 1;
  }
  return known == 2;
}

bool KernelInternals::is_subsystem(Place function) {
  uint8_t& known = subsystems_[function.raw];
  if (known == 0) known = begins_with_any(function_name(names_.place(function)), kSubsystems) ? 2 : 1;
  return known == 2;
}

bool KernelInternals::is_internal(Place pc, std::span<const Place> functions, ObjectId address) {
  return is_ignored(pc) || std::ranges::any_of(functions, [&](Place one) { return is_subsystem(one); }) ||
         begins_with_any(names_.object(address), kStatistics);
}

std::vector<Verdict> race_reports(std::span<const Race> races, const KernelRaceState& state,
                                  const Names& names, KernelInternals& internals) {
  std::vector<Named> pairs = wanted(races, state, names, internals);
  group(pairs);
  std::map<size_t, std::vector<const Named*>> by_number;
  for (const Named& pair : pairs) by_number[pair.group].push_back(&pair);
  const auto tells_more = [](const Named* a, const Named* b) { return *a < *b; };
  std::vector<std::vector<const Named*>> groups;
  for (auto& [number, members] : by_number) {
    std::sort(members.begin(), members.end(), tells_more);
    groups.push_back(std::move(members));
  }
  std::sort(groups.begin(), groups.end(),
            [&](const auto& a, const auto& b) { return tells_more(a.front(), b.front()); });

  std::vector<Verdict> reports;
  for (const std::vector<const Named*>& members : groups) {
    const Named& best = *members.front();
    Verdict verdict{.kind = BugKind::DataRace,
                    .severity = best.intended() ? Severity::Suspicion : Severity::Race,
                    .title = fmt::format("data race: {} / {}", best.low, best.high),
                    .detail = {},
                    .evidence = {}};
    verdict.detail = fmt::format("Nothing orders these accesses to {}: {}.",
                                 names.object(best.race->second.address), pair_text(best));
    if (best.intended())
      verdict.detail += " Both are marked (READ_ONCE and the like), so their authors know of it.";
    else if (best.first == Marking::Unknown || best.second == Marking::Unknown)
      verdict.detail += " Marked (READ_ONCE and the like) or not: unknown without their source.";
    for (const Record& record : {best.race->first, best.race->second})
      verdict.detail += fmt::format("\n{} in {}; holds {}.", names.agent(state.agents[record.agent()].id),
                                    state.context.stack_text(record.pc, record.where.path, names),
                                    state.context.locks_text(record.where.locks, names));
    // Lists each pair of places once, whatever they touched.
    std::vector<std::string> others;
    for (const Named* pair : members)
      if (std::tie(pair->first_place, pair->second_place) != std::tie(best.first_place, best.second_place) &&
          std::tie(pair->first_place, pair->second_place) != std::tie(best.second_place, best.first_place))
        if (std::string text = pair_text(*pair);
            std::find(others.begin(), others.end(), text) == others.end())
          others.push_back(std::move(text));
    for (size_t i = 0; i < std::min(others.size(), kMostOthers); ++i)
      verdict.detail += fmt::format("\nAlso {}.", others[i]);
    if (others.size() > kMostOthers)
      verdict.detail += fmt::format("\nAnd {} more.", others.size() - kMostOthers);
    for (const Record& record : {best.race->first, best.race->second})
      verdict.evidence.push_back(
          {record.step, state.agents[record.agent()].id, record.pc,
           fmt::format("{} of {}", record.writes() ? "store" : "load", names.object(record.address))});
    reports.push_back(std::move(verdict));
  }
  return reports;
}

}  // namespace slalom
