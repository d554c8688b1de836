// Reports on a kernel's console: texts of real kernels, and the title that each must have.
#include "detect/kernels/console.h"

#include <gtest/gtest.h>

#include <fstream>

#include "detect/kernels/console_frames.h"
#include "detect/kernels/console_report.h"
#include "support/source_dir.h"
#include "unit/detect/script.h"

namespace slalom::test {
namespace {

using Titles = std::vector<std::string>;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// Returns the detector's verdicts for an execution with this console.
std::vector<Verdict> verdicts_of(const std::vector<std::string>& lines) {
  const ScriptNames names;
  ConsoleDetector detector(names);
  detector.reset();
  Event event;
  event.agent = AgentId::initial(0);
  event.op = OpKind::Console;
  for (const std::string& line : lines) {
    event.text = line;
    detector.on_event(event);
    ++event.step.raw;
  }
  detector.on_end(Exited{});
  std::vector<Verdict> verdicts;
  detector.harvest(verdicts);
  return verdicts;
}

Titles titles_of(std::string_view text) {
  Titles titles;
  for (const Verdict& verdict : verdicts_of(lines_of(text))) titles.push_back(verdict.title);
  return titles;
}

std::string read_golden(const std::string& name) {
  std::ifstream file(source_dir() + "/tests/golden/console/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Titles titles_of_file(const std::string& name) {
  return titles_of(read_golden(name));
}

// The real console of a module that does each of these on request, in Debian's kernel 6.1.
TEST(Console, EverythingAModuleCanDoTo61) {
  EXPECT_EQ(
      titles_of_file("linux-6.1.txt"),
      (Titles{"WARNING in oopser:oopser_warn", "WARNING in oopser:oopser_warn_on",
              "refcount_t: underflow in oopser:oopser_ref", "call of a NULL pointer in oopser:oopser_call",
              "kernel BUG in oopser:oopser_bug", "list_del corruption in oopser:oopser_list",
              "NULL pointer dereference in oopser:oopser_strlen",
              "general protection fault in oopser:oopser_lock",
              "scheduling while atomic in oopser:oopser_sleep", "scheduling while atomic in do_task_dead"}));
}

TEST(Console, TheSameIn612) {
  EXPECT_EQ(
      titles_of_file("linux-6.12.txt"),
      (Titles{"WARNING in oopser:oopser_warn", "refcount_t: underflow in oopser:oopser_ref",
              "call of a NULL pointer in oopser:oopser_call", "kernel BUG in oopser:oopser_bug",
              "list_del corruption in oopser:oopser_list", "NULL pointer dereference in oopser:oopser_strlen",
              "general protection fault in oopser:oopser_lock",
              "scheduling while atomic in oopser:oopser_sleep", "scheduling while atomic in do_task_dead"}));
}

// If text is cut off or doubled, every title is one of the whole text's titles, or a less detailed one.
TEST(Console, TornTexts) {
  const std::string text = read_golden("linux-6.1.txt");
  for (size_t begin = 0; begin < text.size(); begin += 997)
    for (const std::string& title : titles_of(std::string_view(text).substr(begin, 1 + begin * 7 % 5000)))
      EXPECT_LT(title.size(), 80u) << title;
}

TEST(Console, AnOopsIsOneVerdictWithItsLines) {
  const std::vector<std::string> lines = lines_of(
      "[    9.000000] demo: opened\n"
      "[   10.123456] BUG: kernel NULL pointer dereference, address: 0000000000000008\n"
      "[   10.123460] #PF: supervisor read access in kernel mode\n"
      "[   10.123461] #PF: error_code(0x0000) - not-present page\n"
      "[   10.123462] PGD 0 P4D 0 \n"
      "[   10.123470] Oops: 0000 [#1] SMP PTI\n"
      "[   10.123480] CPU: 1 PID: 321 Comm: flow1 Tainted: G           OE     5.10.0-28-amd64 #1 Debian "
      "5.10.209-2\n"
      "[   10.123490] RIP: 0010:demo_open+0x1d/0x60 [demo]\n"
      "[   10.123500] Call Trace:\n"
      "[   10.123510]  chrdev_open+0xac/0x210\n"
      "[   10.123520]  ? cdev_device_add+0x90/0x90\n"
      "[   10.123530] RIP: 0033:0x7f1234567890\n"
      "[   10.123540] ---[ end trace 5a4b3c2d1e0f9a8b ]---\n"
      "[   10.200000] demo: closed\n"
      "[   10.300000] Kernel panic - not syncing: Fatal exception\n");
  const auto verdicts = verdicts_of(lines);
  ASSERT_EQ(verdicts.size(), 1u);  // the panic is its consequence
  EXPECT_EQ(verdicts[0].title, "NULL pointer dereference in demo:demo_open");
  EXPECT_EQ(verdicts[0].kind, BugKind::Crash);
  EXPECT_EQ(verdicts[0].severity, Severity::Failure);
  EXPECT_TRUE(verdicts[0].detail.starts_with("BUG: kernel NULL pointer dereference, address: 00"));
  EXPECT_TRUE(verdicts[0].detail.ends_with("\n---[ end trace 5a4b3c2d1e0f9a8b ]---"));
  ASSERT_EQ(verdicts[0].evidence.size(), 1u);
  EXPECT_EQ(verdicts[0].evidence[0].step, Step{1});

  // A report that is cut anywhere gives the same title, or a less detailed one.
  for (size_t size = 2; size < lines.size(); ++size) {
    const auto cut = verdicts_of({lines.begin(), lines.begin() + static_cast<ptrdiff_t>(size)});
    ASSERT_EQ(cut.size(), 1u) << size;
    EXPECT_EQ(cut[0].title, size < 8 ? "NULL pointer dereference" : verdicts[0].title) << size;
  }
  const auto head_missing = verdicts_of({lines.begin() + 5, lines.end()});
  ASSERT_EQ(head_missing.size(), 1u);
  EXPECT_EQ(head_missing[0].title, "oops in demo:demo_open");
}

struct Case {
  const char* text;
  const char* title;
  BugKind kind;
};

TEST(Console, Faults) {
  const Case cases[] = {
      {"BUG: unable to handle page fault for address: ffffc90000abc000\n#PF: supervisor write access in "
       "kernel "
       "mode\nOops: Oops: 0002 [#1] SMP NOPTI\nCPU: 0 UID: 0 PID: 77 Comm: b Not tainted 6.16.3 #1\nRIP: "
       "0010:pipe_write+0x2b/0x6a0\n",
       "page fault in pipe_write", BugKind::Crash},
      {"[  364.970767] Oops: general protection fault, probably for non-canonical address "
       "0xbfff93fcd9822a28: 0000 "
       "[#1] PREEMPT SMP NOPTI\n[  365.0] RIP: 0010:__list_del_entry_valid_or_report+0x43/0x80\n[  365.1] "
       "Call "
       "Trace:\n[  365.1]  <TASK>\n[  365.1]  ? die_addr+0x36/0x90\n[  365.1]  dmu_zfetch_fini+0x9b/0x1a0 "
       "[zfs]\n",
       "general protection fault in zfs:dmu_zfetch_fini", BugKind::Crash},
      {"general protection fault: 0000 [#1] SMP\nKASAN: null-ptr-deref in range "
       "[0x0000000000000008-0x000000000000000f]\nRIP: 0010:ext4_iget+0x1/0x2\n",
       "NULL pointer dereference in ext4_iget", BugKind::Crash},
      {"divide error: 0000 [#1] SMP PTI\nRIP: 0010:scale.isra.0+0x12/0x40 [demo]\n",
       "divide error in demo:scale", BugKind::Crash},
      {"Oops: divide error: 0000 [#1] SMP NOPTI\nRIP: 0010:scale.constprop.0+0x12/0x40 [demo deadbeef01]\n",
       "divide error in demo:scale", BugKind::Crash},
      {"------------[ cut here ]------------\nKernel BUG at skb_pull+0x25/0x30 [verbose debug info "
       "unavailable]\n"
       "Oops: invalid opcode: 0000 [#1] SMP NOPTI\nRIP: 0010:skb_pull+0x25/0x30\n",
       "kernel BUG in skb_pull", BugKind::Assertion},
      {"invalid opcode: 0000 [#1] SMP\nRIP: 0010:strange+0x0/0x1\n", "invalid opcode in strange",
       BugKind::Crash},
      {"general protection fault: 0000 [#1] SMP\nRIP: 0010:0xffffffffc06b4f00\nCall Trace:\n"
       " nf_hook_slow+0x3f/0xb0\n",
       "general protection fault in nf_hook_slow", BugKind::Crash},
      {"traps: PANIC: double fault, error_code: 0x0\ndouble fault: 0000 [#1] SMP\nRIP: 0010:deep+0x4/0x10\n",
       "double fault in deep", BugKind::Crash},
      {"BUG: TASK stack guard page was hit at 00000000f3e2 (stack is 0000..0000)\nOops: stack guard page: "
       "0000 [#1] "
       "SMP\nRIP: 0010:deep+0x4/0x10\n",
       "stack overflow in deep", BugKind::Crash},
      {"Kernel panic - not syncing: stack-protector: Kernel stack is corrupted in: demo_copy+0x7c/0x80 "
       "[demo]\n",
       "stack corruption (stack-protector) in demo:demo_copy", BugKind::Crash},
      {"Kernel panic - not syncing: sysrq triggered crash\n", "kernel panic: sysrq triggered crash",
       BugKind::Crash},
      {"Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n",
       "kernel panic: Attempted to kill init! exitcode=N", BugKind::Crash},
  };
  for (const Case& one : cases) {
    const auto verdicts = verdicts_of(lines_of(one.text));
    ASSERT_EQ(verdicts.size(), 1u) << one.title;
    EXPECT_EQ(verdicts[0].title, one.title);
    EXPECT_EQ(verdicts[0].kind, one.kind) << one.title;
  }
}

TEST(Console, ChecksOfTheKernelItself) {
  const Case cases[] = {
      {"------------[ cut here ]------------\nWARNING: kernel/workqueue.c:2345 at __queue_work+0x3f1/0x510, "
       "CPU#1: "
       "flow/412\nModules linked in:\n",
       "WARNING in __queue_work", BugKind::Assertion},
      {"[60836.026949] refcount_t: underflow; use-after-free.\n[60836.026959] WARNING: CPU: 0 PID: 645312 at "
       "lib/refcount.c:28 refcount_warn_saturate+0xd8/0xe0\n[60836.026991] RIP: "
       "0010:refcount_warn_saturate+0xd8/0xe0\n[60836.0270] Call Trace:\n[60836.0271]  <TASK>\n[60836.0272]  "
       "blkg_free_workfn+0xa8/0xc0\n",
       "refcount_t: underflow in blkg_free_workfn", BugKind::UseAfterFree},
      {"list_add corruption. next->prev should be prev (ffff8881), but was ffff8882. (next=ffff8881).\n"
       "------------[ cut here ]------------\nkernel BUG at lib/list_debug.c:27!\ninvalid opcode: 0000 [#1] "
       "SMP\n"
       "RIP: 0010:__list_add_valid+0x4d/0x70\nCall Trace:\n demo_add+0x33/0x50 [demo]\n",
       "list_add corruption in demo:demo_add", BugKind::Crash},
      {"BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580\nin_atomic(): 1, "
       "irqs_disabled(): 0, non_block: 0, pid: 99, name: flow\npreempt_count: 1, expected: 0\nCall Trace:\n "
       "<TASK>\n "
       "dump_stack_lvl+0x44/0x5c\n __might_resched.cold+0xb6/0xc7\n mutex_lock+0x1a/0x40\n "
       "demo_put+0x20/0x60 "
       "[demo]\n",
       "sleeping function called from invalid context in demo:demo_put", BugKind::Assertion},
      {"[ 6440.4] BUG: KASAN: slab-use-after-free in __sched_srv+0x9e/0x2e0 [tempesta_fw]\n[ 6440.5] Read of "
       "size 4 "
       "at addr ffff8888cbb664b0 by task kworker/46:0/36821\n",
       "KASAN: slab-use-after-free in tempesta_fw:__sched_srv", BugKind::UseAfterFree},
      {"[  117.318353][ T9855] BUG: KASAN: slab-out-of-bounds in memcpy+0x1bc/0x490\n[  117.3][ T9855] Call "
       "Trace:\n"
       "[  117.3][ T9855]  <TASK>\n[  117.3][ T9855]  dump_stack_lvl+0x1c1/0x2a0\n[  117.3][ T9855]  "
       "print_report+0x17e/0x7e0\n[  117.3][ T9855]  kasan_report+0x1/0x2\n[  117.3][ T9855]  "
       "memcpy+0x1/0x2\n"
       "[  117.3][ T9855]  hfsplus_strcasecmp+0x1bc/0x490\n",
       "KASAN: slab-out-of-bounds in hfsplus_strcasecmp", BugKind::Crash},
      {"BUG: KASAN: double-free in kfree+0xb6/0x300\nCall Trace:\n kasan_report_invalid_free+0x55/0x80\n "
       "kfree+0xb6/0x300\n demo_free+0x1/0x2 [demo]\n",
       "KASAN: double-free in demo:demo_free", BugKind::DoubleFree},
      {"BUG: KFENCE: use-after-free read in demo_get+0x1/0x2 [demo]\n",
       "KFENCE: use-after-free read in demo:demo_get", BugKind::UseAfterFree},
      {"BUG: KCSAN: data-race in tick_sched+0x1/0x2 / demo_set+0x20/0x40 [demo]\n",
       "KCSAN: data-race in demo:demo_set / tick_sched", BugKind::DataRace},
      {"BUG: KCSAN: data-race in b_func / a_func\n", "KCSAN: data-race in a_func / b_func",
       BugKind::DataRace},
      {"UBSAN: array-index-out-of-bounds in fs/jfs/jfs_dmap.c:2895:31\nindex 7 is out of range for type 's8 "
       "[5]'\n"
       "Call Trace:\n <TASK>\n dump_stack_lvl+0x1/0x2\n ubsan_epilogue+0x5/0x40\n "
       "__ubsan_handle_out_of_bounds+0x1/0x2\n dbAdjTree+0x474/0x4f0\n",
       "UBSAN: array-index-out-of-bounds in dbAdjTree", BugKind::Assertion},
      {"BUG kmalloc-64 (Tainted: G    B      OE): Object already free\n-------\nCall Trace:\n "
       "dump_stack_lvl+0x1/0x2\n free_debug_processing+0x1/0x2\n kfree+0x1/0x2\n demo_free+0x1/0x2 [demo]\n",
       "SLUB: Object already free in demo:demo_free", BugKind::DoubleFree},
      {"INFO: task flow:412 blocked for more than 120 seconds.\n      Not tainted 6.1.0-18-amd64 "
       "#1\ntask:flow "
       "state:D stack:0     pid:412\nCall Trace:\n <TASK>\n __schedule+0x351/0xa20\n schedule+0x5d/0xe0\n "
       "schedule_preempt_disabled+0x14/0x30\n __mutex_lock.constprop.0+0x399/0x700\n demo_lock_b+0x1f/0x40 "
       "[demo]\n",
       "hung task in demo:demo_lock_b", BugKind::Deadlock},
      {"watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [flow:412]\nCPU: 1 PID: 412\nRIP: "
       "0010:native_queued_spin_lock_slowpath+0x63/0x1c0\nCall Trace:\n <TASK>\n _raw_spin_lock+0x27/0x30\n "
       "demo_spin+0x12/0x40 [demo]\n",
       "soft lockup in demo:demo_spin", BugKind::Livelock},
      {"watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3\nRIP: 0010:demo_loop+0x1/0x2 [demo]\n",
       "hard lockup in demo:demo_loop", BugKind::Livelock},
      {"rcu: INFO: rcu_preempt self-detected stall on CPU\nrcu: \t0-....: (5249 ticks this GP)\nRIP: "
       "0010:demo_loop+0x1/0x2 [demo]\n",
       "RCU stall in demo:demo_loop", BugKind::Livelock},
      {"BUG: spinlock bad magic on CPU#0, flow/412\nCall Trace:\n do_raw_spin_lock+0x6b/0xb0\n "
       "demo_use+0x1/0x2\n",
       "spinlock: bad magic in demo_use", BugKind::Assertion},
      {"BUG: strange thing ffff888012345678 in flow/412, 17 times\n", "BUG: strange thing N in N times",
       BugKind::Assertion},
  };
  for (const Case& one : cases) {
    const auto verdicts = verdicts_of(lines_of(one.text));
    ASSERT_EQ(verdicts.size(), 1u) << one.title;
    EXPECT_EQ(verdicts[0].title, one.title);
    EXPECT_EQ(verdicts[0].kind, one.kind) << one.title;
    EXPECT_EQ(verdicts[0].severity, one.kind == BugKind::DataRace ? Severity::Race : Severity::Failure);
  }
}

TEST(Console, Lockdep) {
  EXPECT_EQ(
      titles_of(
          "[ 1028.365890] ======================================================\n"
          "[ 1028.366165] WARNING: possible circular locking dependency detected\n"
          "[ 1028.366348] 5.10.0-00479-g1c1358a0a606 #87 Tainted: G                T\n"
          "[ 1028.366620] ------------------------------------------------------\n"
          "[ 1028.366838] kswapd0/79 is trying to acquire lock:\n"
          "[ 1028.367052] ffff8b1654603e08 (&c->mark_lock){++++}-{0:0}, at: "
          "bch2_clear_page_bits+0x12a/0x140 [bcachefs]\n"
          "[ 1028.367385]\n"
          "               but task is already holding lock:\n"
          "[ 1028.367676] ffffffffba151dc0 (fs_reclaim){+.+.}-{0:0}, at: __fs_reclaim_acquire+0x5/0x30\n"),
      Titles{"lockdep: possible circular locking in bcachefs:bch2_clear_page_bits"});
  EXPECT_EQ(
      titles_of("WARNING: inconsistent lock state\n6.1.0 #1 Not tainted\ninconsistent {HARDIRQ-ON-W} -> "
                "{IN-HARDIRQ-W} usage.\nflow/1 [HC1[1]:SC0[0]:HE0:SE1] takes:\nffff (&lock){?.+.}-{2:2}, at: "
                "demo_irq+0x1/0x2 [demo]\n"),
      Titles{"lockdep: inconsistent lock state in demo:demo_irq"});
  EXPECT_EQ(titles_of("WARNING: suspicious RCU usage\n6.1.0 #1 Not tainted\nnet/demo.c:12 suspicious "
                      "rcu_dereference_check() usage!\nstack backtrace:\nCall Trace:\n <TASK>\n "
                      "dump_stack_lvl+0x1/0x2\n lockdep_rcu_suspicious+0x1/0x2\n demo_read+0x1/0x2\n"),
            Titles{"lockdep: suspicious RCU usage in demo_read"});
  EXPECT_EQ(titles_of("[ BUG: Invalid wait context ]\n6.1.0 #1 Not tainted\nflow/1 is trying to lock:\nffff "
                      "(&m){+.+.}-{3:3}, at: demo_wait+0x1/0x2\n"),
            Titles{"lockdep: invalid wait context in demo_wait"});
}

TEST(Console, FileSystems) {
  EXPECT_EQ(
      titles_of(
          "EXT4-fs error (device loop0): ext4_lookup:1785: inode #12: comm ls: deleted inode: 13\n"
          "EXT4-fs error (device loop3 state EA): ext4_lookup:1785: inode #14: comm x: deleted inode: 1\n"
          "EXT4-fs error (device loop0) in ext4_reserve_inode_write:5800: Out of memory\n"
          "EXT4-fs (loop0): mounted filesystem with ordered data mode\n"
          "BTRFS: error (device nvme2n1) in __btrfs_update_delayed_inode:1075: errno=-5 IO failure\n"
          "BTRFS info (device nvme2n1): forced readonly\n"
          "BTRFS critical (device loop7): corrupt leaf: root=1 block=753008640 slot=10\n"
          "BTRFS error (device sda3: state EA): cleaner transaction attach returned -30\n"
          "FAT-fs (loop0): error, fat_bmap_cluster: request beyond EOF (i_pos 1234)\n"
          "XFS (loop0): Internal error ltbno + ltlen > bno at line 1955 of file fs/xfs/x.c.  Caller "
          "xfs_free_ag_extent+0x3f9/0x7e0 [xfs]\n"
          "XFS (loop0): Metadata corruption detected at xfs_agf_verify+0x1/0x2 [xfs], xfs_agf block 0x1\n"
          "XFS (loop0): Unmounting Filesystem\n"),
      (Titles{
          "EXT4-fs error in ext4_lookup", "EXT4-fs error in ext4_reserve_inode_write",
          "BTRFS error in __btrfs_update_delayed_inode", "BTRFS error: corrupt leaf: root=N block=N slot=N",
          "BTRFS error: cleaner transaction attach returned -N",
          "FAT-fs error: fat_bmap_cluster: request beyond EOF (i_pos N)",
          "XFS internal error in xfs:xfs_free_ag_extent", "XFS metadata corruption in xfs:xfs_agf_verify"}));
}

TEST(Console, WhatIsNoReport) {
  EXPECT_EQ(titles_of("[    0.499048] RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable\n"
                      "[    1.0] demo: BUG in my module, error -22\n"
                      "[    1.1] demo: something is wrong: Oops\n"
                      "[    1.2] flow[12]: segfault at 0 ip 0000000000401136 sp 00007ffd error 4 in flow\n"
                      "[    1.3] WARNING: stack recursion on stack type 4\n"
                      "[    1.4] RIP: 0010:demo_open+0x1/0x2\n"
                      "[    1.5] ------------[ cut here ]------------\n"
                      "[    1.6] sysrq: Trigger a crash\n"
                      "---[ end Kernel panic - not syncing: Fatal exception ]---\n"),
            Titles{});
}

TEST(Console, TitlesForgetWhoWhereAndWhen) {
  const auto report = [](const char* time, int cpu, int pid, const char* flow, const char* address) {
    return titles_of(
        fmt::format("[{}] BUG: unable to handle page fault for address: {}\n[{}] Oops: 0000 [#1] SMP\n"
                    "[{}] CPU: {} PID: {} Comm: {} Not tainted\n[{}] RIP: 0010:f+0x1/0x2 [m]\n",
                    time, address, time, time, cpu, pid, flow, time));
  };
  EXPECT_EQ(report("    1.000001", 0, 12, "a", "ffff888000000000"),
            report("12345.678901", 3, 4567, "b", "ffffc900"));
}

TEST(Console, AChattyGuestCostsNothingAndLosesNothing) {
  std::vector<std::string> lines(5000, "[    1.000000] demo: still here");
  for (const char* line : {"BUG: kernel NULL pointer dereference, address: 0", "RIP: 0010:f+0x1/0x2"})
    lines.emplace_back(line);
  lines.insert(lines.end(), 5000, "and on it goes");
  const auto verdicts = verdicts_of(lines);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].title, "NULL pointer dereference in f");
  EXPECT_EQ(std::count(verdicts[0].detail.begin(), verdicts[0].detail.end(), '\n') + 1, 100);
}

TEST(Console, StateIsAValue) {
  const ScriptNames names;
  ConsoleDetector detector(names), other(names);
  const auto lines =
      lines_of("BUG: kernel NULL pointer dereference, address: 0\nOops: 0000 [#1]\nRIP: 0010:f+0x1/0x2\n");
  Event event;
  event.op = OpKind::Console;
  for (size_t i = 0; i < lines.size(); ++i) {
    other.restore(*detector.save());
    event.text = lines[i];
    detector.on_event(event);
    std::vector<Verdict> verdicts;
    for (size_t j = i; j < lines.size(); ++j) {
      event.text = lines[j];
      other.on_event(event);
    }
    other.on_end(Exited{});
    other.harvest(verdicts);
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].title, "NULL pointer dereference in f");
  }
}

TEST(Console, FunctionsInText) {
  EXPECT_EQ(console_function("func+0x12/0x34 [mod]"), "mod:func");
  EXPECT_EQ(console_function("  [<ffffffff81000000>] func.part.3+0x12/0x34"), "func");
  EXPECT_EQ(console_function("? func+0x12/0x34"), "");
  EXPECT_EQ(console_function("func+0x12"), "func");
  EXPECT_EQ(console_function("func"), "");
  EXPECT_EQ(console_function("0xffffffffc06b4f00"), "");
  EXPECT_EQ(console_function("[<"), "");
  EXPECT_EQ(console_function("func+0x1/0x2 ["), "func");
  EXPECT_EQ(console_text("<4>[    1.234567][  T12] text"), "text");
  EXPECT_EQ(console_text("[ BUG: Invalid wait context ]"), "[ BUG: Invalid wait context ]");
  EXPECT_EQ(console_text("[    1.234567]  func"), " func");
}

}  // namespace
}  // namespace slalom::test
