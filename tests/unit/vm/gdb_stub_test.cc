// Tests the stub without sockets: known conversations, and nonsensical packets.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "unit/vm/tiny_machine.h"
#include "vm/gdb/stub.h"
#include "vm/replay/natural_run.h"

namespace slalom::vm {
namespace {

struct Talk {
  explicit Talk(unsigned cpus = 2)
      : pc(make_tiny(kWalker, cpus)),
        run(*pc),
        // A continue that would never end is soon interrupted.
        debugger(
            run,
            {.checkpoint_every = 2'000, .slice = 1'000, .between = [this] { return run.at_furthest(); }}),
        stub(debugger) {}
  std::string say(std::string_view packet) {
    const std::vector<std::string> answers = stub.answer(packet);
    return answers.empty() ? "nothing" : answers.back();
  }
  std::string monitor(std::string_view command) {
    const auto bytes = from_hex(say("qRcmd," + to_hex(command)));
    return bytes ? std::string(bytes->begin(), bytes->end()) : "";
  }
  std::unique_ptr<Pc> pc;
  NaturalRun run;
  Debugger debugger;
  GdbStub stub;
};

TEST(GdbStub, Greeting) {
  Talk gdb;
  const std::string features = gdb.say("qSupported:multiprocess+;swbreak+;hwbreak+;xmlRegisters=i386");
  for (const char* feature : {"PacketSize=4000", "qXfer:features:read+", "ReverseStep+", "ReverseContinue+",
                              "vContSupported+", "swbreak+", "hwbreak+"})
    EXPECT_NE(features.find(feature), std::string::npos) << feature;
  EXPECT_EQ(features.find("multiprocess"), std::string::npos);
  EXPECT_EQ(gdb.say("?"), "T05thread:1;");
  EXPECT_EQ(gdb.say("qfThreadInfo"), "m1,2");
  EXPECT_EQ(gdb.say("qsThreadInfo"), "l");
  EXPECT_EQ(gdb.say("qC"), "QC1");
  EXPECT_EQ(gdb.say("T2"), "OK");
  EXPECT_EQ(gdb.say("T3"), "E16");
  EXPECT_EQ(gdb.say("qThreadExtraInfo,2"), to_hex(std::string_view("CPU 1 [not started]")));
  EXPECT_EQ(gdb.say("vCont?"), "vCont;c;C;s;S");
  EXPECT_EQ(gdb.say("vMustReplyEmpty"), "");
  EXPECT_TRUE(gdb.stub.wants_acknowledgements());
  EXPECT_EQ(gdb.say("QStartNoAckMode"), "OK");
  EXPECT_FALSE(gdb.stub.wants_acknowledgements());
}

TEST(GdbStub, TheDescriptionComesInPieces) {
  Talk gdb;
  std::string xml;
  while (true) {
    const std::string part =
        gdb.say(fmt::format("qXfer:features:read:target.xml:{:x},{:x}", xml.size(), 100));
    ASSERT_FALSE(part.empty());
    xml += part.substr(1);
    if (part[0] == 'l') break;
    ASSERT_EQ(part[0], 'm');
    ASSERT_EQ(part.size(), 101u);
  }
  EXPECT_EQ(xml, RegisterMap().target_xml());
  EXPECT_TRUE(xml.ends_with("</target>\n"));
  EXPECT_EQ(gdb.say("qXfer:features:read:other.xml:0,100"), "E00");
  EXPECT_EQ(gdb.say("qXfer:features:read:target.xml:ffffffffffffffff,ffffffffffffffff"), "l");
}

TEST(GdbStub, RegistersOneByOneAndTogether) {
  Talk gdb;
  const RegisterMap map;
  std::string all;
  for (unsigned i = 0; i < map.count(); ++i) {
    all += gdb.say(fmt::format("p{:x}", i));
  }
  EXPECT_EQ(gdb.say("g"), all);
  EXPECT_EQ(gdb.say(fmt::format("p{:x}", map.count())), "E16");
  EXPECT_EQ(gdb.say("p10"), "0000010000000000");  // rip
  gdb.pc->cpu(0).regs.fpu.status = 3 << 11;
  gdb.pc->cpu(0).regs.fpu.registers[3] = {.significand = 0x0807060504030201, .sign_exponent = 0x0a09};
  EXPECT_EQ(gdb.say("p18"), "0102030405060708090a");  // st0
  EXPECT_EQ(gdb.say("Hg2"), "OK");
  EXPECT_EQ(gdb.say("p10"), "f0ff000000000000");
}

TEST(GdbStub, WritingBeginsANewHistoryUnlessNothingChanges) {
  Talk gdb;
  EXPECT_EQ(gdb.say("vCont;c"), "T02thread:1;");
  EXPECT_EQ(gdb.monitor("position"), "1000 (history begins at 0)\n");
  EXPECT_EQ(gdb.say("P0=" + gdb.say("p0")), "OK");
  EXPECT_EQ(gdb.say("G" + gdb.say("g")), "OK");
  EXPECT_EQ(gdb.say("M100000,4:" + gdb.say("m100000,4")), "OK");
  EXPECT_EQ(gdb.monitor("position"), "1000 (history begins at 0)\n");
  EXPECT_EQ(gdb.say("M100000,4:01020304"), "OK");
  EXPECT_EQ(gdb.say("m100000,4"), "01020304");
  EXPECT_EQ(gdb.monitor("position"), "1000 (history begins at 1000)\n");
  EXPECT_EQ(gdb.say("bs"), "T05thread:1;replaylog:begin;");
  EXPECT_EQ(gdb.say("s"), "T05thread:1;");
  EXPECT_EQ(gdb.say("P0=1122334455667788"), "OK");
  EXPECT_EQ(gdb.say("p0"), "1122334455667788");
  EXPECT_EQ(gdb.monitor("position"), "1001 (history begins at 1001)\n");
  EXPECT_EQ(gdb.say("X100000,3:}\x5d"
                    "ab"),
            "E16");  // four bytes: the packet layer unescapes them, not the stub
  EXPECT_EQ(gdb.say("X100000,2:ab"), "OK");
  EXPECT_EQ(gdb.say("m100000,2"), "6162");
}

TEST(GdbStub, WhatCannotBeWrittenIsRefused) {
  Talk gdb;
  const uint64_t before = gdb.pc->state_hash();
  for (const char* packet : {"P12=10000000",          // cs
                             "P3c=0000000000000000",  // cr0
                             "P10=00000000000000ff",  // rip outside of the range of 32-bit code
                             "P39=000000000000ff00",  // fs_base that is not canonical
                             "P0=11", "P0=1", "P0", "P=0", "Pffff=00", "G00", "M200000,1:00",
                             "Mfee00000,4:00000000", "Mffffffffffffffff,2:0000", "M1ffffe,4:01020304"})
    EXPECT_EQ(gdb.say(packet)[0], 'E') << packet;
  EXPECT_EQ(gdb.pc->state_hash(), before);
  EXPECT_EQ(gdb.say("m1fffff,1"), "00");
  EXPECT_EQ(gdb.say("m1fffff,10"), "00");  // up to the end of memory
  EXPECT_EQ(gdb.say("m200000,1"), "E0e");
  EXPECT_EQ(gdb.say("mfee00020,4"), "E0e");  // a device
  EXPECT_EQ(gdb.say("m100000000,4"), "E0e");
  EXPECT_EQ(gdb.say("m10000,ffffffffffffffff").size(), PacketReader::kLongest);
}

TEST(GdbStub, CodeThatIsWrittenIsExecuted) {
  Talk gdb;
  EXPECT_EQ(gdb.say("vCont;c"), "T02thread:1;");
  EXPECT_EQ(gdb.say("P10=0000010000000000"), "OK");
  EXPECT_EQ(gdb.say("M10000,5:b811223344"), "OK");  // mov eax, 0x44332211
  EXPECT_EQ(gdb.say("s"), "T05thread:1;");
  EXPECT_EQ(gdb.say("p0"), "1122334400000000");
}

TEST(GdbStub, BreakpointsAndWatchpoints) {
  Talk gdb;
  EXPECT_EQ(gdb.say("qSupported:swbreak+;hwbreak+").empty(), false);
  EXPECT_EQ(gdb.say("Z0,10026,1"), "OK");
  EXPECT_EQ(gdb.say("Z1,1001b,1"), "OK");
  EXPECT_EQ(gdb.say("c"), "T05thread:1;hwbreak:;");
  EXPECT_EQ(gdb.say("c"), "T05thread:1;swbreak:;");
  EXPECT_EQ(gdb.say("z0,10026,1"), "OK");
  EXPECT_EQ(gdb.say("z1,1001b,1"), "OK");
  EXPECT_EQ(gdb.say("Z2,10027,4"), "OK");
  EXPECT_EQ(gdb.say("vCont;c"), "T05thread:1;watch:10027;");
  EXPECT_EQ(gdb.say("bc"), "T05thread:1;watch:10027;");
  EXPECT_EQ(gdb.say("p10"), "2100010000000000");  // before the write
  EXPECT_EQ(gdb.say("vCont;s:1;c"), "T05thread:1;watch:10027;");
  EXPECT_EQ(gdb.say("z2,10027,4"), "OK");
  EXPECT_EQ(gdb.say("bc"), "T05thread:1;replaylog:begin;");
  EXPECT_EQ(gdb.say("Z4,100000,80000"), "OK");
  EXPECT_EQ(gdb.say("c").substr(0, 19), "T05thread:1;awatch:");
  for (const char* packet : {"Z2,0,0", "Z2,ffffffffffffffff,2", "Z0", "Z0,", "Z0,1", "Z0,1,1;X", "z,1,1"})
    EXPECT_EQ(gdb.say(packet)[0], 'E') << packet;
  EXPECT_EQ(gdb.say("Z5,1,1"), "");
}

TEST(GdbStub, Monitor) {
  Talk gdb;
  EXPECT_EQ(gdb.monitor("hash"), fmt::format("{:016x}\n", gdb.pc->state_hash()));
  EXPECT_NE(gdb.monitor("help").find("position"), std::string::npos);
  EXPECT_NE(gdb.monitor("halp").find("slalom knows no \"halp\""), std::string::npos);
  EXPECT_EQ(gdb.say("qRcmd,6"), "E16");
}

TEST(GdbStub, Ends) {
  Talk detached, killed;
  EXPECT_EQ(detached.say("D"), "OK");
  EXPECT_TRUE(detached.stub.detached());
  EXPECT_EQ(killed.stub.answer("k"), std::vector<std::string>{});
  EXPECT_TRUE(killed.stub.killed());
}

// Every packet gets an answer that fits into a packet, and the machine remains in a valid state.
TEST(GdbStub, AnythingIsAnswered) {
  const std::string_view packets[] = {"qSupported:swbreak+;hwbreak+",
                                      "qXfer:features:read:target.xml:0,ffb",
                                      "Hg1",
                                      "Hc-1",
                                      "T1",
                                      "g",
                                      "p10",
                                      "P0=0011223344556677",
                                      "P28=00112233445566778899aabbccddeeff",
                                      "P11=46020000",
                                      "m10000,40",
                                      "M100000,4:01020304",
                                      "X100000,2:ab",
                                      "Z0,10026,1",
                                      "z0,10026,1",
                                      "Z2,100000,80000",
                                      "z2,100000,80000",
                                      "Z3,10027,4",
                                      "vCont;s:1;c",
                                      "vCont;c",
                                      "vCont;S05:1;C05:2",
                                      "s",
                                      "c",
                                      "bs",
                                      "bc",
                                      "qRcmd,68617368",
                                      "qThreadExtraInfo,1",
                                      "qfThreadInfo",
                                      "?",
                                      "vCont?"};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    Talk gdb;
    for (int i = 0; i < 150; ++i) {
      std::string packet(packets[rng.below(std::size(packets))]);
      for (uint64_t changes = rng.below(3); changes > 0 && !packet.empty(); --changes) {
        const size_t at = rng.below(packet.size());
        switch (rng.below(4)) {
          case 0:
            packet[at] = static_cast<char>(rng.next());
            break;
          case 1:
            packet.resize(at);
            break;
          case 2:
            packet.insert(at, std::string(1 + rng.below(20), "0f,;:=-"[rng.below(7)]));
            break;
          default:
            packet[at] = "0123456789abcdef"[rng.below(16)];
        }
      }
      for (const std::string& answer : gdb.stub.answer(packet))
        ASSERT_LE(answer.size(), PacketReader::kLongest) << packet;
      if (gdb.stub.killed() || gdb.stub.detached()) break;
    }
    gdb.pc->rest();
  }
}

}  // namespace
}  // namespace slalom::vm
