#include "detect/kernels/console_frames.h"

#include <algorithm>
#include <cctype>

#include "base/text/characters.h"

namespace slalom {
namespace {

constexpr std::string_view kSpaces = " \t";
constexpr size_t kMostTitle = 120;

// Prefixes. Functions that sleep, lock, copy or check for a caller do not show whose bug it is.
constexpr std::string_view kMachinery[] = {
    // functions that report
    "dump_stack", "show_stack", "show_regs", "show_trace", "dump_backtrace", "__warn", "warn_slowpath",
    "report_bug", "handle_bug", "exc_", "asm_exc_", "asm_sysvec_", "sysvec_", "panic", "__die", "die",
    "oops_", "page_fault_oops", "bad_area", "__bad_area", "no_context", "printk", "_printk", "vprintk",
    "print_", "kasan_", "__kasan_", "__asan_", "kcsan_", "__tsan_", "kmsan_", "__msan_", "kfence_", "ubsan_",
    "__ubsan_", "check_panic", "nmi_", "trigger_", "arch_trigger", "rcu_sched_clock_irq", "rcu_check_",
    "rcu_dump_", "watchdog", "lockdep_", "lock_acquire", "lock_release", "__lock_acquire", "__lock_release",
    "debug_check_no_locks", "debug_print_object", "debug_object", "__debug_object", "debug_check_no_obj",
    "__stack_chk_fail", "end_report", "object_err", "slab_err", "slab_pad", "check_bytes", "check_object",
    "free_debug_", "alloc_debug_", "bad_page", "entry_SYSCALL", "do_syscall", "x64_sys", "ret_from_fork",
    // the scheduler, and functions that sleep
    "schedule", "__schedule", "preempt_schedule", "io_schedule", "__cond_resched", "_cond_resched",
    "__might_", "___might_", "might_", "rcu_note_context_switch", "msleep", "ssleep", "usleep_range",
    "fsleep", "wait_for_completion", "__wait_for_common", "do_wait_for_common", "wait_for_common",
    "wait_woken", "prepare_to_wait", "finish_wait", "synchronize_", "__synchronize_", "wait_rcu_gp",
    "__wait_rcu_gp", "bit_wait", "out_of_line_wait", "__wait_on_bit", "hrtimer_nanosleep", "do_nanosleep",
    // locks
    "mutex_lock", "__mutex_lock", "mutex_unlock", "__mutex_unlock", "mutex_trylock", "ww_mutex_",
    "__ww_mutex_", "rt_mutex_", "__rt_mutex_", "rwsem_", "__down", "down_", "up_", "_raw_", "__raw_",
    "do_raw_", "queued_", "native_queued_", "pv_queued_", "__pv_queued_", "spin_", "percpu_down_",
    "__percpu_down_", "osq_lock",
    // checks of lists and counters
    "refcount_", "__list_", "list_del", "list_add", "__check_object_size", "usercopy_abort", "fortify_panic",
    "__fortify_", "check_heap_object", "__check_heap_object",
    // memory and strings
    "kfree", "kvfree", "kmem_cache_", "__kmem_cache_", "slab_free", "__slab_free", "___cache_free",
    "__cache_free", "kmalloc", "__kmalloc", "krealloc", "memcpy", "__memcpy", "memset", "__memset", "memmove",
    "__memmove", "memcmp", "strlen", "strnlen", "strcmp", "strncmp", "strcpy", "strncpy", "strscpy",
    "copy_user_", "rep_movs", "rep_stos", "_copy_to", "_copy_from", "__copy_", "copy_page", "clear_page",
    "clear_user"};
// Whole names.
constexpr std::string_view kMachineryNames[] = {"down", "up", "kthread", "__fentry__"};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpaces);
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

bool in_function_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

// " [<ffffffff81000000>] func+..." of older kernels
std::string_view without_address(std::string_view text) {
  while (text.starts_with("[<")) {
    const size_t close = text.find(">]");
    if (close == std::string_view::npos) return {};
    text = trimmed(text.substr(close + 2));
  }
  return text;
}

}  // namespace

std::string console_function(std::string_view text) {
  text = without_address(trimmed(text));
  const auto* end = std::find_if_not(text.begin(), text.end(), in_function_name);
  const std::string_view name = text.substr(0, static_cast<size_t>(end - text.begin()));
  std::string_view rest = text.substr(name.size());
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return {};
  if (!rest.starts_with("+0x")) return {};
  const size_t after = rest.find_first_not_of("0123456789abcdef", 3);
  rest = after == std::string_view::npos ? std::string_view{} : rest.substr(after);
  if (rest.starts_with("/0x")) {
    const size_t size_end = rest.find_first_not_of("0123456789abcdef", 3);
    rest = size_end == std::string_view::npos ? std::string_view{} : rest.substr(size_end);
  }
  const std::string function(name.substr(0, std::max<size_t>(1, name.find('.', 1))));
  if (!rest.starts_with(" [")) return function;
  const std::string_view module = rest.substr(2, rest.find_first_of(" ]", 2) - 2);
  const bool sane = !module.empty() && std::all_of(module.begin(), module.end(),
                                                   [](char c) { return in_function_name(c) || c == '-'; });
  return sane ? std::string(module) + ":" + function : function;
}

std::string first_function(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t space = std::min(text.find(' ', at), text.size());
    if (std::string function = console_function(text.substr(at)); !function.empty()) return function;
    at = space + 1;
  }
  return {};
}

std::string stable_text(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size() && result.size() < kMostTitle;) {
    const size_t end = std::min(text.find(' ', at), text.size());
    std::string word(text.substr(at, end - at));
    at = end + 1;
    if (const size_t slash = word.rfind('/'); slash != std::string_view::npos && slash + 1 < word.size())
      if (is_digit(word[slash + 1])) continue;
    std::string stable;
    for (size_t i = 0; i < word.size();) {
      size_t run = i;
      while (run < word.size() && (is_hex(word[run]) || (run == i + 1 && word[run] == 'x'))) ++run;
      const bool starts = i == 0 || std::isalnum(static_cast<unsigned char>(word[i - 1])) == 0;
      const bool stops = run == word.size() ||
                         (std::isalpha(static_cast<unsigned char>(word[run])) == 0 && word[run] != '_');
      if (run > i && starts && stops && (is_digit(word[i]) || run - i >= 8)) {
        stable += 'N';
        i = run;
      } else {
        stable += word[i++];
      }
    }
    if (!result.empty()) result += ' ';
    result += stable;
  }
  while (!result.empty() && (result.back() == ' ' || result.back() == '.')) result.pop_back();
  return result.substr(0, kMostTitle);
}

bool is_machinery(std::string_view function) {
  if (function.find(':') != std::string_view::npos) return false;  // functions of modules are no machinery
  const auto begins = [&](std::string_view prefix) { return function.starts_with(prefix); };
  return std::any_of(std::begin(kMachinery), std::end(kMachinery), begins) ||
         std::find(std::begin(kMachineryNames), std::end(kMachineryNames), function) !=
             std::end(kMachineryNames);
}

std::string telling_caller(std::span<const std::string_view> texts) {
  bool in_trace = false;
  for (const std::string_view line : texts) {
    const std::string_view text = trimmed(line);
    if (text.starts_with("Call Trace:")) {
      in_trace = true;
      continue;
    }
    if (!in_trace) continue;
    const std::string function = console_function(text);
    if (!function.empty() && !is_machinery(function)) return function;
  }
  return {};
}

std::string telling_function(std::span<const std::string_view> texts) {
  constexpr std::string_view kKernelRip = "RIP: 0010:";
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = trimmed(texts[i]);
    if (!text.starts_with(kKernelRip)) continue;
    const std::string function = console_function(text.substr(kKernelRip.size()));
    if (!function.empty() && !is_machinery(function)) return function;
    const std::string caller = telling_caller(texts.subspan(i));
    return caller.empty() ? function : caller;
  }
  return telling_caller(texts);
}

}  // namespace slalom
