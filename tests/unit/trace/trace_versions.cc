// Traces of all versions that there ever were, which must stay readable.
#include <fstream>
#include <sstream>

#include "unit/trace/saved_trace.h"
#include "unit/trace/transcript.h"

namespace slalom {
namespace {

// Files of all versions that there ever were, which must stay readable.
void expect_golden_trace(const char* name, const TraceLog& log, bool named) {
  auto reader = TraceReader::open(golden(name));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->has_names(), named);
  Transcript sink;
  const auto end = reader->read_into(sink);
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(sink.text(), transcript(log));
}

TEST(TraceStream, Version1) {
  const AgentId main = AgentId::initial(0);
  const AgentId child = main.child(0);
  TraceLog log;
  for (int op = 0; op < 40; ++op)
    log.on_event({Step{static_cast<uint64_t>(op)},
                  main,
                  static_cast<OpKind>(op),
                  Place{0x1000u + 4 * op},
                  {},
                  0,
                  {},
                  op - 20,
                  ""});
  log.on_event({Step{40}, main, OpKind::Spawn, Place{0x2000}, ObjectId{77}, 1, child, 0, "spawned"});
  Access access = {};
  access.pc_bits = 0x401000;
  access.op_bits = static_cast<uint64_t>(OpKind::CompareExchange);
  access.size = 4;
  access.address_bits = 0xffff88800010;
  access.retired = 2;
  access.value = 0xdeadbeef;
  access.physical = 0x10;
  access.ring = 3;
  access.wrote = 1;
  Access wide = access;
  wide.size = 16;
  wide.retired = 9;
  wide.address_bits = 0x7fff00000000;
  log.on_accesses(std::vector<Access>{access, wide}, {child, 5, Step{41}});
  log.on_accesses({}, {main, 0, Step{60}});
  log.on_end(Deadlocked{{{main, OpKind::Join, ObjectId{77}, Place{0x2004}, {child}}}});
  expect_golden_trace("v1-trace.slalom", log, false);
}

TEST(TraceStream, Version2KnowsTheLimitOfNotes) {
  TraceLog log;
  log.on_event({.step = Step{1},
                .agent = AgentId::initial(0),
                .op = OpKind::Note,
                .pc = Place{0x2000},
                .text = "many"});
  log.on_end(LimitReached{77, {AgentId::initial(0)}, LimitReached::Limit::Notes});
  expect_golden_trace("v2-trace.slalom", log, false);
}

TEST(TraceStream, Version3) {
  TraceLog log;
  const AgentId main = AgentId::initial(0);
  log.on_event({.step = Step{1}, .agent = main, .op = OpKind::Lock, .pc = Place{16}, .recognised = true});
  log.on_event({.step = Step{2}, .agent = main, .op = OpKind::SyscallEnter, .pc = Place{17}, .value = 3});
  log.on_event({.step = Step{3}, .agent = main, .op = OpKind::SyscallExit, .pc = Place{18}, .value = -3});
  Access access = {};
  access.pc_bits = 0x401000;
  access.op_bits = static_cast<uint64_t>(OpKind::Store);
  access.size = 4;
  access.address_bits = 0x7000;
  access.unordered = 1;
  Access private_access = access;
  private_access.is_private = 1;
  private_access.retired = 1;
  log.on_accesses(std::vector<Access>{access, private_access}, {main, 0, Step{4}});
  log.on_end(Deadlocked{.waiting = {}, .doubt = "Perhaps."});
  const std::string now = written(log);
  if (!std::filesystem::exists(golden("v3-trace.slalom"))) {
    std::string hex;
    for (const char byte : now) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    FAIL() << "the file is missing. Its bytes, for `xxd -r -p`: " << hex;
  }
  expect_golden_trace("v3-trace.slalom", log, true);
  auto reader = TraceReader::open(golden("v3-trace.slalom")).value();
  Transcript sink;
  ASSERT_TRUE(reader.read_into(sink).ok());
  expect_named(reader.names(), log);

  // Compression may change, contents may not.
  const auto contents = [](std::istream& file) {
    file.ignore(kContainerHeader);
    BlockReader blocks(file);
    std::vector<std::vector<uint8_t>> all;
    while (const auto block = blocks.next()) {
      all.emplace_back(block->contents.begin(), block->contents.end());
      all.back().push_back(block->type);
    }
    return all;
  };
  std::ifstream then(golden("v3-trace.slalom"), std::ios::binary);
  std::istringstream again(now);
  EXPECT_EQ(contents(then), contents(again)) << "the writer changed: raise the version of this kind";
}

}  // namespace
}  // namespace slalom
