// Cpu: one virtual CPU while it runs, and System: what all CPUs share.
//
// Registers are the truth between instructions. The rest is here to be fast: flags not yet computed, the
// software TLBs, the block that runs, and how far it may go.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vm/cpu/flags.h"
#include "vm/cpu/memory/tlb.h"
#include "vm/cpu/observe/tap.h"
#include "vm/cpu/op.h"
#include "vm/cpu/registers.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

class Blocks;
struct Cpu;

// What lies outside CPUs and RAM. Rare, so virtual calls do no harm.
class Bus {
 public:
  virtual ~Bus() = default;
  virtual bool in(unsigned cpu, uint16_t port, unsigned size, uint32_t& value) = 0;  // false: unknown port
  virtual bool out(unsigned cpu, uint16_t port, unsigned size, uint32_t value) = 0;
  virtual bool is_device(Physical address) const = 0;
  virtual bool read(unsigned cpu, Physical address, unsigned size, uint64_t& value) = 0;
  virtual bool write(unsigned cpu, Physical address, unsigned size, uint64_t value) = 0;
  virtual uint64_t apic_base(unsigned cpu) const = 0;
  virtual bool set_apic_base(unsigned cpu, uint64_t value) = 0;
  // CR8's way to the local APIC's register, which does not ask whether the APIC is enabled.
  virtual uint8_t task_priority(unsigned cpu) const = 0;
  virtual void set_task_priority(unsigned cpu, uint8_t value) = 0;
  virtual uint64_t now() const = 0;  // virtual nanoseconds, exact for the last instruction of a block
  // Must the CPU stop before its next instruction: for an interrupt, or since the devices' plans changed?
  virtual bool attention(unsigned cpu, bool interrupts_enabled) const = 0;
};

// A guest fault: a value, delivered by the run loop.
struct Fault {
  uint8_t vector = 0;
  bool has_code = false;
  uint32_t code = 0;
  uint64_t address = 0;  // of a page fault
};

enum Vector : uint8_t {
  kDivide = 0,
  kDebug = 1,
  kNmi = 2,
  kBreakpoint = 3,
  kOverflowTrap = 4,
  kBound = 5,
  kInvalidOpcode = 6,
  kNoDevice = 7,
  kDoubleFault = 8,
  kInvalidTss = 10,
  kNotPresent = 11,
  kStackFault = 12,
  kProtection = 13,
  kPageFault = 14,
  kX87 = 16,
  kAlignmentCheck = 17,
  kMachineCheck = 18,
  kSimd = 19,
};

// A fault as it was raised: for the report of a triple fault.
struct RaisedFault {
  Fault fault;
  uint64_t rip = 0;
  uint64_t cr2 = 0;
};

// Why the handlers stopped going on.
enum class Leave : uint8_t {
  Block,    // at the end of a block, with rip set
  Fault,    // an op raised Cpu::fault
  Turn,     // behind an op, before stopped_at: the CPU's turn ends there
  Replay,   // an op must run in a block of its own
  Unknown,  // an op stands for something not implemented
  Place,    // a hook wants to stop before its instruction
  Access,   // before a watched access
};

// Why Cpu::run returned.
enum class Exit : uint8_t {
  Budget,    // all instructions it was given
  Window,    // interrupts may have become deliverable
  Halted,    // HLT
  Paused,    // PAUSE
  Turn,      // it fails the same exchange again and again: Cpu::ends_turn
  Shutdown,  // triple fault
  Unknown,   // something not implemented: Cpu::unknown says what
  Place,     // before an instruction that was asked for
  Access,    // before or after a watched access: Cpu::hit
  Event,     // something of Cpu::stop_on: Cpu::happened
};

struct JumpCache {
  static constexpr unsigned kEntries = 8192;
  struct Entry {
    uint64_t tag = 0;  // rip with the salt in its upper bits
    Block* block = nullptr;
  };
  static constexpr unsigned kMostLow = 512;
  std::array<Entry, kEntries> entries;
  uint64_t salt = uint64_t{1} << 48;
  // Of links between blocks, which know no more than what a cache has found in the upper half. Another one
  // whenever some of that is forgotten; 0: not known yet (see find_generation). CPUs for which the upper half
  // is the same have the same, since they run the same blocks.
  uint32_t generation = 0;
  // Entries of addresses below the middle, which go when the address space changes. More: all do.
  std::array<uint16_t, kMostLow> low;
  unsigned low_count = 0;

  Entry& at(uint64_t rip) { return entries[(rip ^ (rip >> 13)) & (kEntries - 1)]; }
  void put(uint64_t rip, Block* block) {
    Entry& entry = at(rip);
    entry = {.tag = rip ^ salt, .block = block};
    if (static_cast<int64_t>(rip) < 0) return;
    if (low_count < kMostLow) low[low_count] = static_cast<uint16_t>(&entry - entries.data());
    ++low_count;
  }
  void forget_low() {
    if (low_count > kMostLow) return forget();
    for (unsigned i = 0; i < low_count; ++i) entries[low[i]] = Entry{};
    low_count = 0;
  }
  void forget() {
    generation = 0;
    low_count = 0;
    salt += uint64_t{1} << 48;
    if (salt == 0) {
      entries.fill(Entry{});
      salt = uint64_t{1} << 48;
    }
  }
};

// What is known of a page that holds translations, so that a write to it drops no more than it must.
struct TableUse {
  uint64_t address = 0;    // the first virtual address its entries are for
  uint8_t level = 0;       // 1: its entries map pages
  bool ambiguous = false;  // used in several places: every write drops everything
  uint16_t writes = 0;     // since it was last walked through
};

// Which instructions of observed code have a hook before them at which a CPU can stop.
struct Places {
  enum class Where : uint8_t {
    Listed,  // only the listed ones
    Locked,  // those that synchronise: LOCK, and XCHG with memory
    Memory,  // those with an operand in memory that the stack pointer does not address
  };
  Where where = Where::Listed;
  std::set<Physical> listed;
  std::set<uint16_t> page_offsets;  // in every page: for addresses whose page is not known yet
};

struct System {
  System(Ram& memory, Bus& outside);
  ~System();

  Ram& ram;
  Bus& bus;
  std::unique_ptr<Blocks> blocks;
  std::vector<std::unique_ptr<Cpu>> cpus;
  std::vector<TableUse> tables;  // by page
  uint32_t generations = 0;      // of links between blocks, so far

  Tap* tap = nullptr;     // who observes, if anybody does
  bool remembers = true;  // else every instruction is translated and decoded anew: slow, to compare with
  Places places;          // where observed code has hooks that may stop

  void forget_jumps();      // everywhere: some virtual address leads to other code now
  void forget_low_jumps();  // of addresses below the middle
  void bury();              // when no block runs: those that were dropped
};

struct PendingAccess {
  uint64_t address = 0;
  Touch touch = Touch::Nothing;
};

// The accesses that other contexts would make next. A CPU that passes hooks stops before an instruction that
// conflicts with one of them.
struct PendingAccesses {
  static constexpr unsigned kMost = 8;
  std::array<PendingAccess, kMost> all;
  unsigned count = 0;
  bool stop_if_interruptible = false;  // stop at the next hook where the CPU accepts interrupts
};

struct Cpu {
  Cpu(System& all, unsigned id);

  Registers regs;  // first: handlers reach it with short offsets
  LazyFlags flags;
  int64_t left = 0;         // instructions before the run loop must be asked
  Block* block = nullptr;   // the running one; regs.gpr[kRip] is its start
  TlbEntry* tlb = nullptr;  // of the current privilege
  JumpCache* jumps = nullptr;
  std::array<uint64_t, 4> segment_base{};  // by AddressSegment
  uint8_t cpl = 0;
  Leave leave = Leave::Block;
  const Op* stopped_at = nullptr;  // the op that left with Fault, Replay or Unknown
  Block** link = nullptr;          // where the block that comes next may be noted
  bool window = false;             // interrupts must be looked at before the next instruction
  bool paused = false;
  bool ends_turn = false;          // it waits for another CPU, which should run now
  bool interrupted = false;        // the last instruction went through the interrupt table
  bool switched_task = false;      // the last instruction, even if it faulted then, left another task running
  bool step_waits = false;         // the last instruction keeps a single step from trapping behind it
  bool steps_by_new_flag = false;  // the last instruction traps if it leaves TF set, not if it began so
  Fault fault;
  // The faults that made the CPU shut down, in their order: each but the first came while the one before, or
  // the double fault that it made, was delivered. Three or four; empty before that.
  std::vector<RaisedFault> last_faults;

  // While observed: see cpu/tap.h.
  Tap* tap = nullptr;
  bool recording = false;     // accesses go the slow way
  uint64_t quiet = 0;         // how near to the stack pointer they are not recorded
  bool aligned_only = false;  // the same, since alignment is checked
  uint8_t transfer = 0;       // OpKind of the call or return that leads to the next block
  uint64_t transfer_from = 0;
  uint64_t came_from = 0;   // the block before
  uint64_t last_stack = 0;  // the stack pointer at the last block
  // Where to stop.
  uint64_t passes = 0;  // so many hooks are passed before one stops,
  // Stop before a conflict with one of these; nullptr: ignore conflicts.
  const PendingAccesses* pending = nullptr;
  bool pending_changed = false;  // *pending may be out of date: stop at the next hook
  PendingAccess passed;          // of the last instruction whose hook was passed with `pending` set
  bool at_place = false;         // it stopped there, and has not moved since
  bool leaves_place = false;  // so the hook at this run's first instruction, if one is still there, is passed
  static constexpr uint8_t kIret = 1, kFault = 2, kHypercall = 4;
  uint8_t stop_on = kHypercall;  // of these
  uint8_t happened = 0;          // since run began
  bool watches_off = false;
  bool stop_behind = false;  // a watched access wants to stop behind its instruction
  AccessHit hit;
  uint64_t watched_at =
      ~uint64_t{0};  // the instruction (as executed() counts) whose accesses are counted here
  unsigned watched_seen = 0;
  unsigned watched_skip = 0;  // watched accesses of the first instruction that may pass
  unsigned resume_skip = 0;   // the same for the next run, as long as the CPU stays where it is

  uint64_t linear = 0;                           // what legacy_address() found
  alignas(16) std::array<std::byte, 16> buffer;  // what the slow accesses read or write
  int64_t slice = 0;                             // what `left` was when run began
  int64_t withheld = 0;                          // of `left`: see end_with_block()

  System& system;
  const unsigned id;
  CodeMode mode;
  uint64_t code_base = 0;  // of code that is not 64-bit
  // Supervisor, user, and what of the first an observed supervisor may use: where accesses are not recorded.
  std::array<Tlb, 3> tlbs;
  static constexpr unsigned kQuietTlb = 2;
  uint64_t quiet_stack = 0;                   // of which stack they are
  uint64_t quiet_first = 0, quiet_room = ~0;  // they are used while the stack pointer is there
  Tlb empty_tlb;  // never filled: while alignment is checked, every access is a slow one
  std::array<JumpCache, 2> jump_caches;
  // The blocks whose calls have not returned, the latest last: a guess, where a return leads to.
  static constexpr unsigned kReturns = 32;
  std::array<Block*, kReturns> returns{};
  unsigned return_count = 0;
  std::string unknown;
  std::unique_ptr<std::byte[]> scratch;  // a truncated block

  uint64_t& gpr(unsigned i) { return regs.gpr[i]; }
  bool is_quiet(uint64_t address) const { return (address ^ regs.gpr[kRsp]) < quiet; }
  bool long_mode() const { return (regs.efer & efer::kLma) != 0; }
  bool protected_mode() const { return (regs.cr0 & cr0::kPe) != 0; }
  bool vm86() const { return (regs.rflags & flag::kVm86) != 0; }

  // Runs at most that many instructions.
  Exit run(uint64_t instructions);
  // Instructions since run() began. While a handler runs that ends its block, its own one is included.
  uint64_t executed() const { return static_cast<uint64_t>(slice - left); }

  // The end of the running block enters no other one, whichever are remembered: the run loop looks first.
  void end_with_block() {
    if (block == nullptr) return;
    withheld += left;
    slice -= left;
    left = 0;
  }

  uint64_t rflags() const { return (regs.rflags & ~flag::kArithmetic) | flags.arithmetic(); }
  void set_rflags(uint64_t value);  // all of it; whoever may change what has been decided
  void settle() {
    regs.rflags = rflags();
    flags.set_arithmetic(regs.rflags);
  }

  // After regs was replaced, or cr0, cr4, efer or segments changed: what follows from them.
  void registers_changed();
  void set_cpl(unsigned value);
  void choose_tlb();  // by privilege, and by whether alignment is checked or somebody observes
  void look_at_stack() {
    if (regs.gpr[kRsp] - quiet_first >= quiet_room) change_stack();
  }
  void change_stack();
  void add_quiet(uint64_t address, const TlbEntry& entry);
  void attach(Tap* observer);
  void tell(const CpuEvent& event) {
    if (tap != nullptr) tap->event(*this, event, executed());
  }
  // It goes on somewhere else than where it stopped.
  void moved() {
    at_place = false;
    resume_skip = 0;
  }
  // Instructions of this run that were complete before `op`.
  uint64_t executed_before(const Op* op) const {
    return executed() - (block == nullptr ? 0 : block->count - op->number);
  }
  void forget_translations();
  // An exchange with memory has changed nothing. True: it was the same one so often that the turn should end.
  bool fails_again(uint64_t address);

  // Faults: set `fault` and return false, so that a helper can `return raise_...`.
  bool raise(Vector vector);
  bool raise(Vector vector, uint32_t code);
  bool raise_page_fault(uint64_t address, uint32_t code);

  // cpu/run.cc
  Block* next_block();   // the one at rip; null: the fetch faulted
  Block* fresh_block();  // the same, one instruction of it, without looking at what is remembered
  Block* within_limit(Block* whole);
  Block* shortened(const Block& whole, unsigned count);
  Block* alone(const Op& op);
  void deliver_trap();

  // cpu/interrupt.cc: goes through the IDT. `soft`: an INT instruction (checks the gate's privilege).
  void deliver_fault();
  bool interrupt(uint8_t vector, bool soft, bool has_code, uint32_t code, uint64_t return_rip);
  void reset(bool power_on);    // or INIT: then all but CPU 0 wait to be started
  void start_at(uint8_t page);  // SIPI
};

// Privileged state, shared by handlers, loaders and debuggers (cpu/control.cc).
bool write_cr(Cpu& cpu, unsigned number, uint64_t value);
bool read_msr(Cpu& cpu, uint32_t number, uint64_t& value);
bool write_msr(Cpu& cpu, uint32_t number, uint64_t value);
void cpuid(const Cpu& cpu, uint32_t leaf, uint32_t subleaf, uint32_t out[4]);

}  // namespace slalom::vm
