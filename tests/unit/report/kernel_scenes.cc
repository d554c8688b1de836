// Hand-written executions of kernels: a read that sees half a write, and an oops with an interrupt on the
// way.
#include <fmt/format.h>

#include "unit/report/scene.h"

namespace slalom::test {

Place Scene::at(const std::string& place) {
  for (const auto& [pc, known] : names.places)
    if (known == place) return pc;
  const Place pc{0x400000 + names.places.size()};
  names.places[pc] = place;
  names.sources[pc] = "";
  return pc;
}

Scene& Scene::touch(OpKind op, const std::string& who, const std::string& place, const std::string& name,
                    int64_t value, bool wrote) {
  const AgentId id = agent(who);
  Access access{};
  access.pc_bits = at(place).raw;
  access.op_bits = static_cast<uint8_t>(op);
  access.size = 8;
  access.address_bits = access.physical = object(name).raw;
  access.value = static_cast<uint64_t>(value);
  access.wrote = wrote;
  log.on_accesses({&access, 1}, {id, 0, Step{steps_}});
  retire(id);
  return *this;
}

Scene& Scene::tells(OpKind op, const std::string& who, const std::string& place, int64_t value,
                    const std::string& text) {
  tell(op, agent(who), at(place), steps_, "", {0, "", value}, text);
  return *this;
}

Scene& Scene::calls(const std::string& who, const std::string& call) {
  names.calls[{agent(who), calls_[agent(who)]++}] = call;
  tells(OpKind::SyscallEnter, who, "0x402a0a", 1);
  retire(agent(who));
  return *this;
}

namespace {

// Operations of every call that no reader wants to see.
void open_file(Scene& s, const std::string& who) {
  s.calls(who, "fd = open(\"/tmp/f\", O_RDWR)");
  s.reads(who, "kmem_cache_alloc+0x5d", "freelist", 64).writes(who, "kmem_cache_alloc+0x7a", "freelist", 128);
  s.touch(OpKind::ReadModifyWrite, who, "path_get+0x11", "dentry.count", 3, false);
  for (int i = 0; i < 9; ++i) s.reads(who, "link_path_walk+0x40", fmt::format("{} name[{}]", who, i), i);
  s.tells(OpKind::SyscallExit, who, "0x402a0c", 3);
}

}  // namespace

// The second page is written after the reader has read it.
Scene torn_read() {
  Scene s;
  open_file(s, "writer");
  s.calls("writer", "w = pwrite64(fd, buf(8192), 8192, 0)");
  s.touch(OpKind::CompareExchange, "writer", "down_write+0x1c", "inode.lock", 0, true);
  s.writes("writer", "copy_user_generic_string+0x2c", "page 1", 120);
  s.reads("writer", "shmem_write_end+0x54", "folio.flags", 29);
  open_file(s, "reader");
  s.calls("reader", "r = pread64(fd, buf(8192), 8192, 0)");
  s.reads("reader", "copy_user_generic_string+0x2c", "page 1", 120);
  s.reads("reader", "copy_user_generic_string+0x2c", "page 2", 121);
  s.tells(OpKind::SyscallExit, "reader", "0x402a0c", 8192);
  s.touch(OpKind::ReadModifyWrite, "writer", "shmem_write_end+0x67", "folio.count", 3, false);
  s.writes("writer", "copy_user_generic_string+0x2c", "page 2", 120);
  s.writes("writer", "up_write+0x20", "inode.lock", 0);
  s.tells(OpKind::SyscallExit, "writer", "0x402a0c", 8192);
  const std::string wrong = "calls gave data that they give in no order of whole calls";
  s.end(Faulted{Faulted::Kind::Assertion, {}, {}, wrong});
  s.finding.target = make_target("kernel", "torn", "");
  s.finding.verdict = {BugKind::Assertion, Severity::Failure, "assertion failed: " + wrong, "", {}};
  s.finding.minimality = Minimality::Minimum;
  s.options.switch_kinds = {ChoiceKind::Start, ChoiceKind::Running, ChoiceKind::Ended};
  // The counts are the search's steps, so only the places identify the operations.
  s.finding.constraints = {{{s.agent("writer"), 2, s.at("shmem_write_end+0x54"), "none"},
                            {s.agent("reader"), 0, s.at("0x402a0a"), "none"}},
                           {{s.agent("reader"), 5, s.at("copy_user_generic_string+0x2c"), "load page 1"},
                            {s.agent("writer"), 3, s.at("copy_user_generic_string+0x2c"), "store page 2"}}};
  return s;
}

// A timer interrupt on the way to a NULL dereference in a module.
Scene kernel_oops() {
  Scene s;
  const AgentId opener = s.agent("opener");
  s.agent("closer");
  s.name_agent(opener.interrupt(0x1c), "timer interrupt on cpu0");
  s.calls("opener", "fd = open(\"/dev/slalom_pipe\", O_RDONLY)");
  s.reads("opener", "slalom_pipe:pipe_open+0x1b", "pipe.buffer", 4096);
  s.reads("timer interrupt on cpu0", "slalom_pipe:pipe_open+0x24", "idt[0xec]", 1);
  s.tells(OpKind::IrqEnter, "timer interrupt on cpu0", "slalom_pipe:pipe_open+0x24", 0xec);
  for (int i = 0; i < 30; ++i)
    s.writes("timer interrupt on cpu0", "update_vsyscall+0x40", fmt::format("vdso_data+{}", i * 8), i);
  s.calls("closer", "close(3)");
  for (int i = 0; i < 20; ++i) s.writes("closer", "slalom_pipe:pipe_release+0x38", "pipe.readers", 20 - i);
  s.writes("closer", "slalom_pipe:pipe_release+0x41", "pipe.buffer", 0);
  s.tells(OpKind::SyscallExit, "closer", "0x402a0c", 0);
  s.reads("opener", "slalom_pipe:pipe_open+0x24", "pipe.readers", 1);
  s.reads("opener", "slalom_pipe:pipe_open+0x2b", "pipe.buffer", 0);
  s.writes("opener", "vprintk_emit+0x80", "console_seq", 7);
  s.tells(OpKind::Console, "opener", "io_serial_out+0x14", 0,
          "BUG: kernel NULL pointer dereference, address: 0");
  s.tells(OpKind::Console, "opener", "io_serial_out+0x14", 0, "RIP: 0010:pipe_open+0x2f/0x70 [slalom_pipe]");
  s.end(Exited{});
  std::string detail =
      "BUG: kernel NULL pointer dereference, address: 0000000000000008\n#PF: supervisor read access in "
      "kernel mode\n"
      "PGD 0 P4D 0\nOops: 0000 [#1] PREEMPT SMP NOPTI\nCPU: 0 PID: 71 Comm: agent\n"
      "RIP: 0010:pipe_open+0x2f/0x70 [slalom_pipe]\nCode: 48 8b 40 08\nCall Trace:\n <TASK>\n ? "
      "__die_body+0x1a/0x60";
  for (int i = 0; i < 10; ++i) detail += fmt::format("\n caller_{}+0x10/0x20", i);
  detail += "\n </TASK>\n---[ end trace 0000000000000000 ]---";
  s.finding.target = make_target("kernel", "pipe", "");
  s.finding.verdict = {
      BugKind::Crash,
      Severity::Failure,
      "NULL pointer dereference in slalom_pipe:pipe_open",
      detail,
      {{Step{s.steps()}, opener, s.at("io_serial_out+0x14"), "the kernel begins to report it"}}};
  s.finding.minimality = Minimality::Minimal;
  return s;
}

}  // namespace slalom::test
