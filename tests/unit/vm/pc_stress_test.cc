// A guest cannot harm the host: CPUs that run random bytes with random registers, descriptor tables and page
// tables, in every mode, stay within their memory and return. The sanitizers and the guards around guest
// memory detect violations.
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "unit/vm/tiny_machine.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

// Bytes that often decode to long and rare instructions: prefixes, the second opcode map, string
// instructions, far transfers, system instructions.
constexpr uint8_t kFavourites[] = {0x0f, 0x66, 0xf2, 0xf3, 0x48, 0x67, 0x2e, 0xf0, 0xa4, 0xa5,
                                   0xaa, 0xab, 0xcf, 0xcb, 0xea, 0x9a, 0xff, 0xc8, 0xd8, 0xdd,
                                   0x01, 0x22, 0x20, 0x30, 0x32, 0xae, 0xc7, 0x8e, 0xcd, 0xe4,
                                   0xef, 0x05, 0x34, 0x07, 0x9d, 0x00, 0xff};

uint8_t code_byte(Rng& rng) {
  return rng.below(3) == 0 ? kFavourites[rng.below(std::size(kFavourites))]
                           : static_cast<uint8_t>(rng.next());
}

// A number as guests use them: small, near an edge, an address in RAM or just behind it, or random.
uint64_t number(Rng& rng) {
  switch (rng.below(8)) {
    case 0:
      return rng.below(16);
    case 1:
      return ~rng.below(16);
    case 2:
      return rng.below(kTinyMemory);
    case 3:
      return kTinyMemory - 8 + rng.below(16);
    case 4:
      return 0xfee00000 + rng.below(0x1000);
    case 5:
      return (uint64_t{1} << rng.below(64)) - rng.below(2);
    case 6:
      return 0xffff800000000000 + rng.below(kTinyMemory);
    default:
      return rng.next();
  }
}

// Usually points into RAM, with any rights.
uint64_t table_entry(Rng& rng) {
  const uint64_t page =
      rng.below(10) == 0 ? number(rng) & ~uint64_t{0xfff} : rng.below(kTinyMemory) & ~0xfffull;
  uint64_t rights = rng.below(4) == 0 ? rng.next() & 0xfff : 0x27;
  if (rng.below(8) == 0) rights |= 0x80;
  return page | rights | (rng.below(16) == 0 ? uint64_t{1} << 63 : 0);
}

void fill_memory(Ram& ram, Rng& rng) {
  std::vector<uint8_t> bytes(kPageSize);
  for (uint64_t i = 0; i < 24; ++i) {
    const uint64_t page = rng.below(ram.pages());
    const bool table = rng.below(2) == 0;
    for (size_t at = 0; at < kPageSize; at += 8) {
      uint64_t word = 0;
      if (table)
        word = table_entry(rng);
      else
        for (int k = 0; k < 8; ++k) word = word << 8 | code_byte(rng);
      for (int k = 0; k < 8; ++k) bytes[at + static_cast<size_t>(k)] = static_cast<uint8_t>(word >> 8 * k);
    }
    ASSERT_TRUE(ram.write(ram.address_of(page), bytes));
  }
}

Segment segment(Rng& rng) {
  Segment s{
      .selector = static_cast<uint16_t>(number(rng)),
      .attributes = static_cast<uint16_t>(rng.below(2) == 0 ? 0xc93 | rng.below(2) << 3 : rng.next() & 0xfff),
      .limit = static_cast<uint32_t>(rng.below(2) == 0 ? 0xffffffff : number(rng)),
      .base = rng.below(2) == 0 ? 0 : number(rng)};
  return s;
}

// Random registers, or those of a working mode with everything else random.
Registers registers(Rng& rng) {
  Registers r;
  for (unsigned i = 0; i < 16; ++i) r.gpr[i] = number(rng);
  r.gpr[kRip] = rng.below(4) == 0 ? number(rng) : rng.below(kTinyMemory);
  r.rflags = (rng.next() & 0x3f7fd5) | flag::kFixed;
  if (rng.below(8) != 0) r.rflags &= ~(flag::kVm86 | flag::kTrap);
  for (Segment& s : r.segments) s = segment(rng);
  r.ldtr = segment(rng);
  r.tr = segment(rng);
  r.gdtr = {.base = number(rng), .limit = static_cast<uint16_t>(number(rng))};
  r.idtr = {.base = number(rng), .limit = static_cast<uint16_t>(number(rng))};
  r.cr2 = number(rng);
  r.cr3 = rng.below(kTinyMemory) & ~0xfffull;
  for (uint64_t& entry : r.pdptes) entry = table_entry(rng);
  for (uint64_t& one : r.dr) one = rng.next();
  for (uint64_t* one : {&r.star, &r.lstar, &r.cstar, &r.sfmask, &r.kernel_gs_base, &r.sysenter_cs,
                        &r.sysenter_esp, &r.sysenter_eip, &r.tsc_offset, &r.tsc_aux})
    *one = number(rng);
  r.mxcsr = static_cast<uint32_t>(rng.next() & 0xffff);
  r.fpu.control = static_cast<uint16_t>(rng.next());
  r.fpu.status = static_cast<uint16_t>(rng.next());
  r.fpu.valid = static_cast<uint8_t>(rng.next());
  for (X87Register& one : r.fpu.registers)
    one = {.significand = number(rng), .sign_exponent = static_cast<uint16_t>(number(rng))};
  for (Xmm& one : r.xmm) one = {.low = number(rng), .high = number(rng)};
  r.interrupt_shadow = rng.below(2) == 0;
  r.nmi_blocked = rng.below(2) == 0;
  constexpr uint64_t kPlain = cr0::kEt | cr0::kNe;
  switch (rng.below(6)) {
    case 0:  // real mode
      r.cr0 = kPlain;
      break;
    case 1:  // protected
      r.cr0 = kPlain | cr0::kPe;
      break;
    case 2:  // two levels
      r.cr0 = kPlain | cr0::kPe | cr0::kPg | (rng.next() & cr0::kWp);
      r.cr4 = rng.next() & cr4::kPse;
      break;
    case 3:  // three
      r.cr0 = kPlain | cr0::kPe | cr0::kPg | (rng.next() & cr0::kWp);
      r.cr4 = cr4::kPae;
      r.efer = rng.next() & efer::kNxe;
      break;
    case 4:  // four
      r.cr0 = kPlain | cr0::kPe | cr0::kPg | (rng.next() & cr0::kWp);
      r.cr4 = cr4::kPae | cr4::kOsfxsr | cr4::kOsxmmexcpt;
      r.efer = efer::kLme | efer::kLma | efer::kSce | (rng.next() & efer::kNxe);
      if (rng.below(4) != 0) r.segments[kCs].attributes = 0xa9b;
      break;
    default:
      r.cr0 = rng.next() & 0xe005003f;
      r.cr4 = rng.next() & 0x7ff;
      r.efer = rng.next() & 0xd01;
      break;
  }
  return r;
}

TEST(Stress, AnythingAGuestDoesStaysInTheGuest) {
  std::unique_ptr<Pc> pc = make_tiny(kWalker, 2);
  const Pc::Checkpoint start = pc->take();
  const Pc::Rest calm = pc->rest();
  std::map<PcStop, int> stops;
  uint64_t executed = 0;
  constexpr int kRuns = 2'000;
  for (int run = 0; run < kRuns; ++run) {
    SCOPED_TRACE(run);
    Rng rng(7, static_cast<uint64_t>(run));
    pc->restore(start);
    fill_memory(pc->ram(), rng);
    Pc::Rest rest = calm;
    for (unsigned cpu = 0; cpu < 2; ++cpu) {
      rest.cpus[cpu] = registers(rng);
      rest.privileges[cpu] = static_cast<uint8_t>(rng.below(2) == 0 ? 0 : rng.below(4));
    }
    ASSERT_TRUE(pc->set_rest(rest).ok());
    const PcStop stop = pc->run(300);
    ++stops[stop];
    ASSERT_LE(pc->executed() - calm.turns.executed, 300u);
    if (stop == PcStop::Unknown) {
      ASSERT_NE(pc->trouble(), "");
    }
    executed += pc->executed() - calm.turns.executed;
    // The resulting state must be valid.
    ASSERT_TRUE(pc->set_rest(pc->rest()).ok());
  }
  // Only meaningful if machines do not all stop at once.
  EXPECT_GT(executed, 20u * kRuns);
  EXPECT_GT(stops[PcStop::Budget], kRuns / 20);
}

// Random machines are deterministic.
TEST(Stress, RandomMachinesAreDeterministic) {
  std::unique_ptr<Pc> whole = make_tiny(kWalker, 2), sliced = make_tiny(kWalker, 2);
  const Pc::Checkpoint start = whole->take();
  ASSERT_EQ(sliced->take(), start);
  const Pc::Rest calm = whole->rest();
  for (uint64_t run = 0; run < 600; ++run) {
    SCOPED_TRACE(run);
    Pc::Rest rest = calm;
    for (Pc* pc : {whole.get(), sliced.get()}) {
      Rng rng(11, run);
      pc->restore(start);
      fill_memory(pc->ram(), rng);
      for (unsigned cpu = 0; cpu < 2; ++cpu) rest.cpus[cpu] = registers(rng);
      ASSERT_TRUE(pc->set_rest(rest).ok());
    }
    const PcStop stop = whole->run(300);
    PcStop last = PcStop::Budget;
    while (last == PcStop::Budget && sliced->executed() < calm.turns.executed + 300) last = sliced->run(1);
    ASSERT_EQ(last, stop);
    ASSERT_EQ(sliced->rest(), whole->rest());
    ASSERT_EQ(sliced->state_hash(), whole->state_hash());
  }
}

}  // namespace
}  // namespace slalom::vm
