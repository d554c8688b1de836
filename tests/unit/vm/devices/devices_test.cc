#include "vm/devices/devices.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "vm/devices/absent_ports.h"
#include "vm/state.h"

namespace slalom::vm {
namespace {

class DevicesTest : public testing::Test {
 protected:
  uint32_t in(uint16_t port, unsigned size = 1, Time now = 0) {
    uint32_t value = 0;
    EXPECT_TRUE(devices.in(now, 0, port, size, value)) << port;
    return value;
  }
  bool out(uint16_t port, uint32_t value, unsigned size = 1, Time now = 0) {
    return devices.out(now, 0, port, size, value);
  }
  uint32_t local_read(unsigned cpu, unsigned offset, Time now = 0) {
    uint64_t value = 0;
    EXPECT_TRUE(devices.mmio_read(now, cpu, kLocalApicBase + offset, 4, value));
    return static_cast<uint32_t>(value);
  }
  bool local(unsigned cpu, unsigned offset, uint32_t value, Time now = 0) {
    return devices.mmio_write(now, cpu, kLocalApicBase + offset, 4, value);
  }
  void route(unsigned pin, uint64_t entry) {
    for (const unsigned half : {1u, 0u}) {
      EXPECT_TRUE(devices.mmio_write(0, 0, kIoApicBase, 4, 0x10 + 2 * pin + half));
      EXPECT_TRUE(devices.mmio_write(0, 0, kIoApicBase + 0x10, 4, entry >> 32 * half & 0xffffffff));
    }
  }
  void enable_local_apics() {
    for (unsigned cpu = 0; cpu < 4; ++cpu) {
      local(cpu, 0xf0, 0x1ff);
      local(cpu, 0xd0, 1u << (24 + cpu));
    }
  }
  std::vector<unsigned> cpus_with_interrupts() {
    std::vector<unsigned> cpus;
    for (unsigned cpu = 0; cpu < 4; ++cpu)
      if (devices.interrupt_pending(cpu)) cpus.push_back(cpu);
    return cpus;
  }
  using Cpus = std::vector<unsigned>;
  Devices devices{{.cpus = 4, .memory_size = 256 << 20}};
};

TEST_F(DevicesTest, IpisReachTheirDestinations) {
  enable_local_apics();
  const auto send = [&](uint32_t high, uint32_t low) {
    for (unsigned cpu = 0; cpu < 4; ++cpu)
      while (devices.acknowledge(cpu)) local(cpu, 0xb0, 0);
    local(1, 0x310, high);
    local(1, 0x300, low);
    return cpus_with_interrupts();
  };
  EXPECT_EQ(send(0x02000000, 0x50), Cpus({2}));
  EXPECT_EQ(send(0xff000000, 0x50), Cpus({0, 1, 2, 3})) << "physical broadcast";
  EXPECT_EQ(send(0x0d000000, 0x850), Cpus({0, 2, 3})) << "logical";
  EXPECT_EQ(send(0, 0x40050), Cpus({1})) << "self";
  EXPECT_EQ(send(0, 0x80050), Cpus({0, 1, 2, 3}));
  EXPECT_EQ(send(0, 0xc0050), Cpus({0, 2, 3})) << "all but self";
  EXPECT_EQ(send(0x07000000, 0x00), Cpus({})) << "nobody";
  local(0, 0x80, 0x30);
  local(1, 0x80, 0x20);
  local(2, 0x80, 0x20);
  EXPECT_EQ(send(0x07000000, 0x950), Cpus({1})) << "lowest priority; the first of equals";
}

TEST_F(DevicesTest, CpusAreStartedLikeOnAPc) {
  local(0, 0x310, 0x03000000);
  local(0, 0x300, 0x4500);  // INIT
  local(0, 0x300, 0x8500);  // de-assert
  local(0, 0x300, 0x0698);  // startup at 98000
  local(0, 0x300, 0x0698);
  EXPECT_TRUE(devices.signal_pending(3));
  EXPECT_FALSE(devices.signal_pending(2));
  EXPECT_EQ(devices.take_signal(3).kind, CpuSignal::Kind::Init);
  EXPECT_EQ(devices.take_signal(3), (CpuSignal{CpuSignal::Kind::Startup, 0x98}));
  EXPECT_FALSE(devices.signal_pending(3));
}

TEST_F(DevicesTest, NmisHaveTheirOwnWay) {
  local(0, 0x310, 0x02000000);
  local(0, 0x300, 0x400);
  EXPECT_TRUE(devices.nmi_pending(2));
  EXPECT_FALSE(devices.interrupt_pending(2));
  EXPECT_EQ(devices.next_interrupt(2)->source, PendingInterrupt::Source::Nmi);
  EXPECT_TRUE(devices.take_nmi(2));
  EXPECT_FALSE(devices.take_nmi(2));
  devices.press_nmi_button();
  EXPECT_TRUE(devices.nmi_pending(0)) << "LINT1 of the boot CPU is set up for it";
  EXPECT_FALSE(devices.nmi_pending(1));
}

TEST_F(DevicesTest, TheSerialPortInterruptsThroughTheIoApic) {
  enable_local_apics();
  route(4, uint64_t{2} << 56 | 0x34);
  out(0x3f9, 0x01);
  devices.push_console_input("x");
  EXPECT_EQ(devices.next_interrupt(2), (PendingInterrupt{PendingInterrupt::Source::Line, 0x34, 4, true}));
  EXPECT_EQ(devices.acknowledge(2), 0x34);
  EXPECT_EQ(in(0x3f8), uint32_t{'x'});
  local(2, 0xb0, 0);
  EXPECT_EQ(devices.next_interrupt(2), std::nullopt);
}

// A legacy kernel: PIC at vector 20, PIT at 100 Hz, APIC unused.
TEST_F(DevicesTest, TheTimerInterruptsThroughThePic) {
  for (const auto& [port, value] : std::vector<std::pair<uint16_t, uint8_t>>{{0x20, 0x11},
                                                                             {0xa0, 0x11},
                                                                             {0x21, 0x20},
                                                                             {0xa1, 0x28},
                                                                             {0x21, 4},
                                                                             {0xa1, 2},
                                                                             {0x21, 1},
                                                                             {0xa1, 1},
                                                                             {0x21, 0xfe},
                                                                             {0xa1, 0xff},
                                                                             {0x43, 0x34},
                                                                             {0x40, 0x9c},
                                                                             {0x40, 0x2e}})
    EXPECT_TRUE(out(port, value));
  EXPECT_FALSE(devices.interrupt_pending(0)) << "programming the timer is not a tick";
  unsigned ticks = 0;
  while (devices.next_deadline() <= kSecond) {
    devices.advance(devices.next_deadline());
    ASSERT_EQ(devices.next_interrupt(0), (PendingInterrupt{PendingInterrupt::Source::Pic, 0x20, 0, true}));
    EXPECT_FALSE(devices.interrupt_pending(1)) << "only CPU 0 is wired through";
    EXPECT_EQ(devices.acknowledge(0), 0x20);
    EXPECT_EQ(devices.acknowledge(0), std::nullopt);
    out(0x20, 0x20, 1, devices.next_deadline() - 1);
    ++ticks;
  }
  EXPECT_EQ(ticks, 1193182u / 11932);
}

TEST_F(DevicesTest, TheTimerIsOnPin2OfTheIoApic) {
  enable_local_apics();
  route(0, 0x30);
  route(2, 0x32);
  out(0x43, 0x30);  // mode 0
  out(0x40, 100);
  out(0x40, 0);
  EXPECT_EQ(devices.next_deadline(), Pit::kClock.time_of(101));
  devices.advance(devices.next_deadline());
  EXPECT_EQ(devices.acknowledge(0), 0x32);
  EXPECT_EQ(devices.next_interrupt(0), std::nullopt);
  EXPECT_EQ(devices.next_deadline(), kNever);
}

TEST_F(DevicesTest, TheClockInterruptsAtItsTimeHoweverLateWeLook) {
  for (const auto& [index, value] : std::vector<std::pair<uint8_t, uint8_t>>{{0x0a, 0x26}, {0x0b, 0x52}}) {
    out(0x70, index);
    out(0x71, value);
  }
  Devices late = devices;
  devices.advance(devices.next_deadline());
  late.advance(kSecond / 2);
  EXPECT_TRUE(devices.state() == late.state());
}

TEST_F(DevicesTest, ADueTimerIsPendingUntilItIsTaken) {
  enable_local_apics();
  local(1, 0x3e0, 0xb);
  local(1, 0x320, 0x20040);
  local(1, 0x380, 1000);
  EXPECT_EQ(devices.next_deadline(), 1000u);
  devices.advance(999);
  EXPECT_FALSE(devices.interrupt_pending(1));
  devices.advance(5500);
  EXPECT_EQ(devices.next_deadline(), 6000u);
  EXPECT_EQ(devices.next_interrupt(1), (PendingInterrupt{PendingInterrupt::Source::Timer, 0x40, 0, true}));
  EXPECT_EQ(devices.acknowledge(1), 0x40);
  EXPECT_EQ(devices.acknowledge(1), std::nullopt) << "ticks that were not taken are one";
  devices.advance(6000);
  const auto pending = devices.pending_interrupts(1);
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_FALSE(pending[0].deliverable) << "the first one is in service";
}

TEST_F(DevicesTest, PortsOfAbsentHardwareReadAsOnes) {
  for (const uint16_t port : {0x2f9, 0x3e9, 0x2e9, 0xcfc, 0x1f7}) {
    EXPECT_TRUE(out(port, 0));
    EXPECT_EQ(in(port), 0xffu);
  }
  EXPECT_TRUE(out(0xcf8, 0x80000604, 4)) << "its second byte is not the reset port's";
  EXPECT_EQ(in(0xcf8, 4), 0xffffffffu);
  EXPECT_EQ(devices.take_power_event(), std::nullopt);
  uint32_t value = 0;
  EXPECT_FALSE(devices.in(0, 0, 0x1234, 1, value));
  EXPECT_FALSE(devices.out(0, 0, 0x1234, 1, 0));
  EXPECT_EQ(devices.statistics().absent_port_accesses, 12u);
}

TEST_F(DevicesTest, NoDeviceIsListedAsAbsent) {
  for (const uint16_t port :
       {0x20, 0x21, 0x40, 0x43,  0x60,  0x61,  0x64,  0x70,  0x71,  0x80,  0x92,  0xa0,   0xa1,
        0xe9, 0xed, 0xf4, 0x3d4, 0x3d5, 0x3da, 0x3f8, 0x3ff, 0x4d0, 0x600, 0x604, 0xb004, 0xcf9})
    EXPECT_EQ(find_absent(port), nullptr) << port;
}

TEST_F(DevicesTest, WideAccessesAreSeveralNarrowOnes) {
  out(0x3d4, 0x410f, 2);
  out(0x3d4, 0x0f);
  EXPECT_EQ(in(0x3d5), 0x41u);
  EXPECT_EQ(in(0x3d4, 2), 0x410fu);
}

TEST_F(DevicesTest, EmptyAddressesReadAsOnesAndAreCounted) {
  uint64_t value = 0;
  EXPECT_FALSE(Devices::is_mmio(0xfed00000));
  EXPECT_TRUE(devices.mmio_read(0, 0, 0xfed00000, 8, value));
  EXPECT_EQ(value, ~uint64_t{0});
  EXPECT_TRUE(devices.mmio_read(0, 0, 0xfed00000, 2, value));
  EXPECT_EQ(value, 0xffffu);
  EXPECT_TRUE(devices.mmio_write(0, 0, 0xc0000000, 4, 1));
  EXPECT_EQ(devices.statistics().unmapped_reads, 2u);
  EXPECT_EQ(devices.statistics().unmapped_writes, 1u);
  EXPECT_FALSE(devices.mmio_read(0, 0, kLocalApicBase + 0x20, 8, value)) << "APICs are 32 bits wide";
}

TEST_F(DevicesTest, TheApicBaseRegister) {
  EXPECT_EQ(devices.read_apic_base(0), 0xfee00900u);
  EXPECT_EQ(devices.read_apic_base(1), 0xfee00800u);
  EXPECT_FALSE(devices.write_apic_base(1, 0xfee00c00)) << "x2APIC";
  EXPECT_FALSE(devices.write_apic_base(1, 0xfed00800)) << "another place";
  EXPECT_TRUE(devices.write_apic_base(1, 0xfee00000));
  EXPECT_EQ(local_read(1, 0x20), 0xffffffffu) << "switched off, it is not there";
}

TEST_F(DevicesTest, PowerEvents) {
  using Kind = PowerEvent::Kind;
  const auto event = [&](uint16_t port, uint32_t value, unsigned size = 1) {
    EXPECT_TRUE(out(port, value, size)) << port;
    return devices.take_power_event();
  };
  EXPECT_EQ(event(0x600, 5 << 2), std::nullopt) << "not without the enable bit";
  EXPECT_EQ(event(0x600, 5 << 2 | 0x20), (PowerEvent{Kind::PowerOff, 0}));
  EXPECT_EQ(event(0x602, 1), (PowerEvent{Kind::Reset, 0}));
  EXPECT_EQ(event(0x604, 0x2000, 2), (PowerEvent{Kind::PowerOff, 0}));
  EXPECT_EQ(event(0xb004, 0x2000, 2), (PowerEvent{Kind::PowerOff, 0}));
  EXPECT_EQ(event(0xf4, 0x10, 4), (PowerEvent{Kind::Exit, 33}));
  EXPECT_EQ(event(0xcf9, 0x02), std::nullopt);
  EXPECT_EQ(event(0xcf9, 0x06), (PowerEvent{Kind::Reset, 0}));
  EXPECT_EQ(event(0x92, 0x03), (PowerEvent{Kind::Reset, 0}));
  EXPECT_EQ(event(0x64, 0xfe), (PowerEvent{Kind::Reset, 0}));
  for (const char c : std::string("Shutdow")) EXPECT_EQ(event(0x8900, static_cast<uint8_t>(c)), std::nullopt);
  EXPECT_EQ(event(0x8900, 'n'), (PowerEvent{Kind::PowerOff, 0}));
  EXPECT_FALSE(out(0x600, 3 << 2 | 0x20)) << "a sleep state that was not announced";
}

TEST_F(DevicesTest, ConsoleOutputComesFromBothPorts) {
  out(0x3f8, 'a');
  out(0xe9, 'b');
  EXPECT_EQ(devices.take_console_output(), "ab");
  EXPECT_EQ(devices.take_console_output(), "");
  EXPECT_EQ(in(0xe9), 0xe9u);
}

// Random guests. Their results must not depend on how often time is advanced, and all states must be valid.
struct RandomGuest {
  explicit RandomGuest(uint64_t seed) : rng(seed) {}
  void step(Devices& devices, Time now) {
    static constexpr uint16_t ports[] = {0x20,  0x21,  0xa0,  0xa1,  0x40,  0x41,  0x42,  0x43,
                                         0x61,  0x60,  0x64,  0x70,  0x71,  0x3f8, 0x3f9, 0x3fa,
                                         0x3fb, 0x3fc, 0x3fd, 0x3fe, 0x3d4, 0x3d5, 0x3c0, 0x3c8,
                                         0x3c9, 0x3da, 0x4d0, 0x80,  0x92,  0xcf9, 0x600};
    const auto cpu = static_cast<unsigned>(rng.below(2));
    const auto size = 1u << rng.below(3);
    const uint16_t port = ports[rng.below(std::size(ports))];
    const auto word = static_cast<uint32_t>(rng.next() >> rng.below(64));
    uint32_t value = 0;
    uint64_t wide = 0;
    switch (rng.below(8)) {
      case 0:
        devices.in(now, cpu, port, size, value);
        break;
      case 1:
      case 2:
        devices.out(now, cpu, port, size, word);
        break;
      case 3:
        devices.mmio_write(now, cpu, kLocalApicBase + rng.below(64) * 16, 4, word);
        break;
      case 4:
        devices.mmio_read(now, cpu, kLocalApicBase + rng.below(64) * 16, 4, wide);
        break;
      case 5:
        devices.mmio_write(now, cpu, kIoApicBase, 4, rng.below(64));
        devices.mmio_write(now, cpu, kIoApicBase + 0x10, 4, word);
        break;
      case 6:
        devices.acknowledge(cpu);
        devices.take_nmi(cpu);
        devices.take_signal(cpu);
        break;
      default:
        devices.push_console_input("input");
        devices.push_keys(std::vector<uint8_t>{0x1e});
    }
    digest = combine(digest, value, wide);
  }
  Rng rng;
  uint64_t digest = 0;
};

TEST_F(DevicesTest, OneLateLookEqualsManyEarlyOnes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Devices often({.cpus = 2}), seldom({.cpus = 2});
    RandomGuest one(seed), two(seed);
    Rng times(seed, 1);
    Time now = 0;
    for (int step = 0; step < 300; ++step) {
      const Time next = now + (times.below(2) ? times.below(2000) : times.below(3'000'000));
      for (int looks = 0; looks < 1000 && often.next_deadline() <= next; ++looks)
        often.advance(often.next_deadline());
      often.advance(next);
      now = next;
      seldom.advance(now);
      one.step(often, now);
      two.step(seldom, now);
      ASSERT_EQ(one.digest, two.digest) << "seed " << seed << " step " << step;
      ASSERT_EQ(often.next_deadline(), seldom.next_deadline());
    }
    EXPECT_TRUE(often.state() == seldom.state()) << "seed " << seed;
  }
}

TEST_F(DevicesTest, AStateSurvivesWritingReadingAndGoingOn) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Devices devices({.cpus = 2});
    RandomGuest guest(seed);
    Time now = 0;
    for (int step = 0; step < 200; ++step) guest.step(devices, now += 12345);

    const Devices::State state = devices.state();
    ByteWriter out;
    StateWriter writer(out);
    writer(state);
    ByteReader in(out.bytes());
    StateReader reader(in);
    Devices::State read;
    reader(read);
    ASSERT_TRUE(in.ok() && in.at_end());
    ASSERT_TRUE(read == state);
    EXPECT_EQ(hash_state(read), hash_state(state));

    Devices other({.cpus = 2});
    ASSERT_TRUE(other.set_state(read)) << "seed " << seed;
    RandomGuest twin = guest;
    for (int step = 0; step < 200; ++step) {
      now += 54321;
      guest.step(devices, now);
      twin.step(other, now);
      ASSERT_EQ(guest.digest, twin.digest) << "seed " << seed;
    }
    EXPECT_TRUE(devices.state() == other.state());
  }
}

// A snapshot file may contain anything. An accepted state must be safe to run.
TEST_F(DevicesTest, CorruptStatesAreRefusedOrHarmless) {
  unsigned refused = 0, accepted = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    Devices devices({.cpus = 2});
    RandomGuest guest(seed);
    Time now = 1'000'000;
    for (int step = 0; step < 50; ++step) guest.step(devices, now += 999);
    ByteWriter out;
    StateWriter writer(out);
    writer(devices.state());
    std::vector<uint8_t> bytes = out.take();
    for (uint64_t changes = rng.below(20) + 1; changes > 0; --changes)
      bytes[rng.below(bytes.size())] = static_cast<uint8_t>(rng.next());
    ByteReader in(bytes);
    StateReader reader(in);
    Devices::State state;
    reader(state);
    if (!in.ok() || !devices.set_state(state)) {
      ++refused;
      continue;
    }
    ++accepted;
    for (int step = 0; step < 50; ++step) guest.step(devices, now += 999);
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(accepted, 100u);
}

TEST_F(DevicesTest, StatesOfOtherMachinesAreRefused) {
  const Devices::State before = devices.state();
  EXPECT_FALSE(devices.set_state(Devices({.cpus = 2}).state()));
  Devices::State wrong = before;
  wrong.interrupts.local[1].id = 0;
  EXPECT_FALSE(devices.set_state(wrong));
  wrong = before;
  wrong.pit.channels[0].reload = 0;
  EXPECT_FALSE(devices.set_state(wrong));
  EXPECT_TRUE(devices.state() == before);
}

}  // namespace
}  // namespace slalom::vm
