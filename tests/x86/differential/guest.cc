#include "guest.h"

#include <algorithm>

#include "base/check.h"
#include "vm/cpu/blocks.h"
#include "vm/cpu/memory/mmu.h"

namespace slalom::vm::diff {
namespace {

// Physical addresses.
constexpr uint64_t kGdt = 0x1000, kIdt = 0x2000, kTask = 0x3000, kKernelStack = 0x5000, kTables = 0x10000,
                   kTablesEnd = 0x40000, kCodeMemory = 0x100000, kDataMemory = 0x110000;
// The kernel's mapping of all memory; only its tables and its stack are used.
constexpr uint64_t kKernel = 0xffff'9000'0000'0000;
constexpr uint64_t kLanding = kKernel + 0x8000;  // 16 bytes for each vector

constexpr uint16_t kCode64 = 0xafb, kCode32 = 0xcfb, kUserData = 0xcf3, kKernelCode = 0xa9b;

uint64_t descriptor(uint16_t attributes) {
  return uint64_t{0xffff} | uint64_t{0xf} << 48 | uint64_t{attributes & 0xffu} << 40 |
         uint64_t{attributes & 0xf00u} << 44;
}

Segment flat(uint16_t selector, uint16_t attributes) {
  return {.selector = selector, .attributes = attributes, .limit = 0xffffffff, .base = 0};
}

// Before other instructions, for example a branch to itself, F2 and F3 repeat nothing.
bool is_string(const Case& one) {
  const auto in = decode(one.mode, {one.bytes.data(), one.length});
  return in && (in->info.meta.category == ZYDIS_CATEGORY_STRINGOP ||
                in->info.meta.category == ZYDIS_CATEGORY_IOSTRINGOP);
}

}  // namespace

void fill_data(const Case& one, const Backgrounds& backgrounds, uint8_t* writable) {
  std::memcpy(writable, backgrounds[one.background % kBackgrounds].data(), kWritable);
  for (unsigned i = 0; i < one.patches && i < one.patch.size(); ++i) {
    const Patch& patch = one.patch[i];
    const size_t offset = std::min<size_t>(patch.offset, kWritable);
    const size_t size = std::min({size_t{patch.size}, patch.bytes.size(), kWritable - offset});
    std::memcpy(writable + offset, patch.bytes.data(), size);
  }
}

// A bus without devices.
class Guest::NoBus final : public Bus {
 public:
  bool in(unsigned, uint16_t, unsigned, uint32_t&) override { return false; }
  bool out(unsigned, uint16_t, unsigned, uint32_t) override { return false; }
  bool is_device(Physical) const override { return false; }
  bool read(unsigned, Physical, unsigned, uint64_t&) override { return false; }
  bool write(unsigned, Physical, unsigned, uint64_t) override { return false; }
  uint64_t apic_base(unsigned) const override { return 0xfee00800; }
  bool set_apic_base(unsigned, uint64_t) override { return false; }
  uint8_t task_priority(unsigned) const override { return 0; }
  void set_task_priority(unsigned, uint8_t) override {}
  uint64_t now() const override { return 0; }
  bool attention(unsigned, bool) const override { return false; }
};

Guest::Guest(const Backgrounds& backgrounds)
    : backgrounds_(backgrounds), bus_(std::make_unique<NoBus>()), next_table_(kTables + kPage) {
  auto ram = Ram::make(4 << 20);
  CHECK(ram.ok(), "{}", ram.error().message);
  ram_ = std::move(*ram);
  system_ = std::make_unique<System>(*ram_, *bus_);
  system_->cpus.push_back(std::make_unique<Cpu>(*system_, 0));
  cpu_ = system_->cpus[0].get();

  for (uint64_t page = 0; page < 16; ++page) map(kKernel + page * kPage, page * kPage, false, true, true);
  for (uint64_t at = 0; at < kCodeSize; at += kPage) map(kCode + at, kCodeMemory + at, true, false, true);
  for (uint64_t at = 0; at < kDataSize; at += kPage)
    map(kData + at, kDataMemory + at, true, at < kWritable, false);
  const std::vector<uint8_t> breakpoints(kCodeSize, kBreakpointByte);
  CHECK(ram_->write(kCodeMemory, breakpoints), "no code pages");
  CHECK(ram_->write(kDataMemory + kWritable, std::span(backgrounds_[0]).subspan(kWritable)), "no data pages");

  // The selectors that Linux uses for programs.
  write64(kGdt + 0x10, descriptor(kKernelCode));
  write64(kGdt + 0x20, descriptor(kCode32));
  write64(kGdt + 0x28, descriptor(kUserData));
  write64(kGdt + 0x30, descriptor(kCode64));
  write64(kTask + 4, kKernel + kKernelStack + kPage);
  write64(kTask + 0x60, uint64_t{0x68} << 48);  // no port is allowed
  for (unsigned vector = 0; vector < 256; ++vector) {
    const uint64_t offset = kLanding + vector * 16;
    const bool user = vector == 3 || vector == 4;
    const uint64_t type = user ? 0xee : 0x8e;
    write64(kIdt + vector * 16,
            (offset & 0xffff) | uint64_t{0x10} << 16 | type << 40 | (offset >> 16 & 0xffff) << 48);
    write64(kIdt + vector * 16 + 8, offset >> 32);
  }

  cpu_->reset(true);
  start_ = cpu_->regs;
  start_.cr0 = cr0::kPe | cr0::kMp | cr0::kEt | cr0::kNe | cr0::kWp | cr0::kPg;
  start_.cr3 = kTables;
  start_.cr4 = cr4::kPae | cr4::kPge | cr4::kOsfxsr | cr4::kOsxmmexcpt;
  start_.efer = efer::kSce | efer::kLme | efer::kLma | efer::kNxe;
  start_.gdtr = {.base = kKernel + kGdt, .limit = 0x7f};
  start_.idtr = {.base = kKernel + kIdt, .limit = 0xfff};
  start_.ldtr = {.attributes = 0};
  start_.tr = {.selector = 0x40, .attributes = 0x8b, .limit = 0x67, .base = kKernel + kTask};
}

Guest::~Guest() = default;

uint64_t Guest::read64(uint64_t physical) const {
  uint64_t value = 0;
  CHECK(ram_->read(physical, {reinterpret_cast<uint8_t*>(&value), 8}), "no RAM at {:x}", physical);
  return value;
}
void Guest::write64(uint64_t physical, uint64_t value) {
  CHECK(ram_->write(physical, {reinterpret_cast<const uint8_t*>(&value), 8}), "no RAM at {:x}", physical);
}

uint64_t Guest::table(uint64_t parent, uint64_t index) {
  const uint64_t entry = read64(parent + index * 8);
  if (entry != 0) return entry & ~uint64_t{0xfff};
  CHECK(next_table_ < kTablesEnd, "too many page tables");
  write64(parent + index * 8, next_table_ | 7);
  next_table_ += kPage;
  return next_table_ - kPage;
}

void Guest::map(uint64_t address, uint64_t page, bool user, bool writable, bool execute) {
  uint64_t at = kTables;
  for (unsigned shift = 39; shift > 12; shift -= 9) at = table(at, (address >> shift) & 511);
  // Set the accessed and dirty bits, as Linux does for existing pages.
  write64(at + ((address >> 12) & 511) * 8,
          page | 0x61 | (user ? 4 : 0) | (writable ? 2 : 0) | (execute ? 0 : uint64_t{1} << 63));
}

void Guest::place_code(const Case& one) {
  std::vector<uint32_t> touched;
  const auto put = [&](unsigned offset, const uint8_t* bytes, unsigned count) {
    for (unsigned i = 0; i < count && offset + i < kCodeSize; ++i) {
      const uint64_t page = ram_->page_of(kCodeMemory + offset + i);
      ram_->touch(page);
      ram_->page_data(page)[(offset + i) % kPage] = bytes == nullptr ? kBreakpointByte : bytes[i];
    }
  };
  put(placed_at_, nullptr, placed_);
  placed_at_ = static_cast<unsigned>(one.state.rip - kCode);
  placed_ = one.length;
  put(placed_at_, one.bytes.data(), placed_);
  for (uint64_t at = 0; at < kCodeSize; at += kPage)
    system_->blocks->drop_page(*system_, ram_->page_of(kCodeMemory + at));
}

void Guest::load(const Case& one) {
  Registers& r = cpu_->regs;
  r = start_;
  std::copy(one.state.gpr.begin(), one.state.gpr.end(), r.gpr.begin());
  r.gpr[kRip] = one.state.rip;
  const bool is_long = one.mode == Mode::k64;
  r.segments[kCs] = is_long ? flat(0x33, kCode64) : flat(0x23, kCode32);
  r.segments[kSs] = flat(0x2b, kUserData);
  for (SegmentName name : {kEs, kDs, kFs, kGs})
    r.segments[name] = is_long ? Segment{} : flat(0x2b, kUserData);
  if (is_long) {
    r.segments[kFs].base = kFsBase;
    r.segments[kGs].base = kGsBase;
  }
  const FloatState& f = one.state.floats;
  r.fpu.control = f.get<uint16_t>(FloatState::kControl);
  r.fpu.status = f.get<uint16_t>(FloatState::kStatus);
  r.fpu.valid = f.get<uint8_t>(FloatState::kTags);
  r.mxcsr = f.get<uint32_t>(FloatState::kMxcsr);
  const unsigned top = (r.fpu.status >> 11) & 7;
  for (unsigned i = 0; i < 8; ++i)
    r.fpu.registers[(top + i) & 7] = {f.get<uint64_t>(FloatState::kStack + 16 * i),
                                      f.get<uint16_t>(FloatState::kStack + 16 * i + 8)};
  for (unsigned i = 0; i < 16; ++i)
    r.xmm[i] = {f.get<uint64_t>(FloatState::kXmm + 16 * i), f.get<uint64_t>(FloatState::kXmm + 16 * i + 8)};
  cpu_->set_rflags(one.state.flags | flag::kInterrupt);
  cpu_->set_cpl(3);
  cpu_->registers_changed();
  cpu_->unknown.clear();

  uint8_t data[kWritable];
  fill_data(one, backgrounds_, data);
  for (uint64_t at = 0; at < kWritable; at += kPage) {
    const uint64_t page = ram_->page_of(kDataMemory + at);
    ram_->touch(page);
    std::memcpy(ram_->page_data(page), data + at, kPage);
  }
}

void Guest::collect(Outcome& outcome) {
  const Registers& r = cpu_->regs;
  outcome.vector = static_cast<uint8_t>((r.gpr[kRip] - kLanding) / 16);
  const bool has_code =
      outcome.vector == 8 || (outcome.vector >= 10 && outcome.vector <= 14) || outcome.vector == 17;
  uint64_t frame = kKernelStack + kPage - 40;
  outcome.error = has_code ? static_cast<uint32_t>(read64(frame - 8)) : 0;
  outcome.address = outcome.vector == kPageFault ? r.cr2 : 0;
  CpuState& s = outcome.state;
  std::copy_n(r.gpr.begin(), 16, s.gpr.begin());
  s.rip = read64(frame);
  s.flags = read64(frame + 16);
  s.gpr[kRsp] = read64(frame + 24);
  for (unsigned i = 0; i < 6; ++i) s.selectors[i] = r.segments[i].selector;
  s.selectors[kCs] = static_cast<uint16_t>(read64(frame + 8));
  s.selectors[kSs] = static_cast<uint16_t>(read64(frame + 32));
  FloatState& f = s.floats;
  f.set(FloatState::kControl, r.fpu.control);
  f.set(FloatState::kStatus, r.fpu.status);
  f.set(FloatState::kTags, r.fpu.valid);
  f.set(FloatState::kMxcsr, r.mxcsr);
  const unsigned top = (r.fpu.status >> 11) & 7;
  for (unsigned i = 0; i < 8; ++i) {
    const X87Register& one = r.fpu.registers[(top + i) & 7];
    f.set(FloatState::kStack + 16 * i, one.significand);
    f.set(FloatState::kStack + 16 * i + 8, one.sign_exponent);
  }
  for (unsigned i = 0; i < 16; ++i) {
    f.set(FloatState::kXmm + 16 * i, r.xmm[i].low);
    f.set(FloatState::kXmm + 16 * i + 8, r.xmm[i].high);
  }
  for (uint64_t at = 0; at < kWritable; at += kPage)
    std::memcpy(outcome.data.data() + at, ram_->page_data(ram_->page_of(kDataMemory + at)), kPage);
}

void Guest::run(const Case& one, Outcome& outcome) {
  place_code(one);
  load(one);
  outcome.ended = outcome.unknown = outcome.loops = false;
  if (mutant_ != nullptr) {
    // Decode first, so that the cache contains the block; then change it in place.
    cpu_->leave = Leave::Block;
    Block* block = cpu_->next_block();
    if (block != nullptr) mutant_->change_op(one, block->ops[0]);
  }
  // A repeated string instruction takes several steps. All but the last leave rip unchanged.
  constexpr unsigned kMaxSteps = 100'000;
  const bool repeats = is_string(one);
  for (unsigned step = 0; step < kMaxSteps; ++step) {
    const Exit exit = cpu_->run(1);
    if (exit == Exit::Unknown) {
      outcome.unknown = true;
      return;
    }
    if (exit == Exit::Shutdown) return;
    if (cpu_->cpl == 0) {
      outcome.ended = true;
      collect(outcome);
      if (mutant_ != nullptr) mutant_->change_outcome(one, outcome);
      return;
    }
    const uint64_t rip = cpu_->regs.gpr[kRip];
    if (rip >= one.state.rip && rip < one.state.rip + one.length && !(repeats && rip == one.state.rip)) {
      outcome.loops = true;
      return;
    }
  }
}

}  // namespace slalom::vm::diff
