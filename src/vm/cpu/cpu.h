// Cpu: one virtual CPU while it runs. System: the state that all CPUs share.
//
// Between instructions, Registers hold the complete state. Everything else exists for speed: flags that are
// not yet computed, the software TLBs, the running block, and how far it may run.
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

// Everything outside of CPUs and RAM. Accesses are rare, so virtual calls do no harm.
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
  // CR8's access to the local APIC's register, which works even if the APIC is disabled.
  virtual uint8_t task_priority(unsigned cpu) const = 0;
  virtual void set_task_priority(unsigned cpu, uint8_t value) = 0;
  virtual uint64_t now() const = 0;  // virtual nanoseconds, exact for the last instruction of a block
  // Returns true if the CPU must stop before its next instruction, for an interrupt or because the devices'
  // next deadline has changed.
  virtual bool attention(unsigned cpu, bool interrupts_enabled) const = 0;
};

// A guest fault. It is a value; the run loop delivers it.
struct Fault {
  uint8_t vector = 0;
  bool has_code = false;
  uint32_t code = 0;
  uint64_t address = 0;  // only for a page fault
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

// A fault with the state when it was raised, for the report of a triple fault.
struct RaisedFault {
  Fault fault;
  uint64_t rip = 0;
  uint64_t cr2 = 0;
};

// Why the handlers returned to the run loop.
enum class Leave : uint8_t {
  Block,    // end of a block, with rip set
  Fault,    // an op raised Cpu::fault
  Turn,     // behind an op and before stopped_at: the CPU's turn ends there
  Replay,   // an op must run in a block of its own
  Unknown,  // an op stands for something that is not implemented
  Place,    // a hook wants to stop before its instruction
  Access,   // before a watched access
};

// Why Cpu::run returned.
enum class Exit : uint8_t {
  Budget,    // executed all instructions it was given
  Window,    // interrupts may have become deliverable
  Halted,    // HLT
  Paused,    // PAUSE
  Turn,      // keeps failing the same exchange: Cpu::ends_turn
  Shutdown,  // triple fault
  Unknown,   // something that is not implemented: see Cpu::unknown
  Place,     // before a place to stop at
  Access,    // before or after a watched access: see Cpu::hit
  Event,     // an event of Cpu::stop_on: see Cpu::happened
};

struct JumpCache {
  static constexpr unsigned kEntries = 8192;
  struct Entry {
    uint64_t tag = 0;  // rip, with the salt in its upper bits
    Block* block = nullptr;
  };
  static constexpr unsigned kMostLow = 512;
  std::array<Entry, kEntries> entries;
  uint64_t salt = uint64_t{1} << 48;
  // The generation of links between blocks. Links rely only on what the caches have found in the upper half
  // of the address space, so the generation changes whenever a part of that is forgotten. 0: not yet
  // determined (see find_generation). CPUs whose upper halves are equal run the same blocks, so they have the
  // same generation.
  uint32_t generation = 0;
  // Indices of entries for addresses in the lower half, which are forgotten when the address space changes.
  // If there are more than kMostLow, all entries are forgotten.
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

// Facts about a page of translations, so that a write to it drops only what depends on it.
struct TableUse {
  uint64_t address = 0;    // the first virtual address that its entries map
  uint8_t level = 0;       // 1: its entries map pages
  bool ambiguous = false;  // used in several places: every write drops everything
  uint16_t writes = 0;     // since its last page walk
};

// Instructions of observed code that have a hook at which a CPU can stop.
struct Places {
  enum class Where : uint8_t {
    Listed,  // only the listed ones
    Locked,  // only synchronising instructions: LOCK, and XCHG with memory
    Memory,  // only those with a memory operand that is not addressed by the stack pointer
  };
  Where where = Where::Listed;
  std::set<Physical> listed;
  std::set<uint16_t> page_offsets;  // on all pages: for addresses whose page is not yet known
};

struct System {
  System(Ram& memory, Bus& outside);
  ~System();

  Ram& ram;
  Bus& bus;
  std::unique_ptr<Blocks> blocks;
  std::vector<std::unique_ptr<Cpu>> cpus;
  std::vector<TableUse> tables;  // by page
  uint32_t generations = 0;      // number of generations of links so far

  Tap* tap = nullptr;   // the observer; nullptr if there is none
  bool caching = true;  // false: translate and decode every instruction anew; slow, for comparisons
  Places places;        // where hooks of observed code may stop

  void forget_jumps();         // for all CPUs: a virtual address now leads to other code
  void forget_low_jumps();     // the same for addresses of the lower half
  void free_dropped_blocks();  // only while no block runs
};

struct PendingAccess {
  uint64_t address = 0;
  OperandUse touch = OperandUse::Nothing;
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

  Registers regs;  // first, so that handlers reach it with short offsets
  LazyFlags flags;
  int64_t left = 0;         // instructions until the run loop must get control
  Block* block = nullptr;   // the running one; regs.gpr[kRip] is its start
  TlbEntry* tlb = nullptr;  // for the current privilege
  JumpCache* jumps = nullptr;
  std::array<uint64_t, 4> segment_base{};  // by AddressSegment
  uint8_t cpl = 0;
  Leave leave = Leave::Block;
  const Op* stopped_at = nullptr;  // the op that left with Fault, Replay or Unknown
  Block** link = nullptr;          // where to store a link to the next block
  bool window = false;             // check for interrupts before the next instruction
  bool paused = false;
  bool ends_turn = false;      // it waits for another CPU, which should run now
  bool interrupted = false;    // the last instruction used the interrupt table
  bool switched_task = false;  // the last instruction switched to another task, even if it faulted afterwards
  bool step_waits = false;     // the last instruction delays a single-step trap
  bool steps_by_new_flag = false;  // the last instruction traps if it sets TF, not if TF was set before
  Fault fault;
  // The faults that made the CPU shut down, in order. Each fault after the first occurred while the previous
  // one, or its double fault, was delivered. Three or four entries; empty before a shutdown.
  std::vector<RaisedFault> last_faults;

  // For observation; see vm/cpu/observe/tap.h.
  Tap* tap = nullptr;
  bool recording = false;  // accesses take the slow path
  uint64_t quiet = 0;      // size of the aligned stack region whose accesses are not recorded; 0: record all
  bool aligned_only = false;  // accesses take the slow path because alignment is checked
  uint8_t transfer = 0;       // OpKind of the call or return that leads to the next block
  uint64_t transfer_from = 0;
  uint64_t came_from = 0;   // the previous block
  uint64_t last_stack = 0;  // the stack pointer at the previous block
  // Where to stop.
  uint64_t passes = 0;  // number of hooks to pass before stopping
  // Stop before a conflict with one of these; nullptr: ignore conflicts.
  const PendingAccesses* pending = nullptr;
  bool pending_changed = false;  // *pending may be out of date: stop at the next hook
  PendingAccess passed;          // of the last instruction whose hook was passed with `pending` set
  bool at_place = false;         // it stopped at a place and has not moved since
  bool leaves_place = false;     // pass the hook at the first instruction of this run, if it still exists
  static constexpr uint8_t kIret = 1, kFault = 2, kHypercall = 4;
  uint8_t stop_on = kHypercall;  // kIret, kFault, kHypercall
  uint8_t happened = 0;          // events of stop_on since run() began
  bool watches_off = false;
  bool stop_behind = false;  // stop after the current instruction, because of a watched access
  AccessHit hit;
  uint64_t watched_at = ~uint64_t{0};  // the instruction (by executed()) to which watched_seen belongs
  unsigned watched_seen = 0;
  unsigned watched_skip = 0;  // number of watched accesses of the first instruction to pass
  unsigned resume_skip = 0;   // the same for the next run, if the CPU stays where it is

  uint64_t linear = 0;                           // result of legacy_address()
  alignas(16) std::array<std::byte, 16> buffer;  // data of the slow accesses
  int64_t slice = 0;                             // the value of `left` when run() began
  int64_t withheld = 0;                          // part of `left`: see end_with_block()

  System& system;
  const unsigned id;
  CodeMode mode;
  uint64_t code_base = 0;  // base of code that is not 64-bit
  // For supervisor and user. The third is for an observed supervisor and holds the pages whose accesses are
  // not recorded.
  std::array<Tlb, 3> tlbs;
  static constexpr unsigned kQuietTlb = 2;
  uint64_t quiet_stack = 0;  // the stack whose accesses are not recorded
  // While the stack pointer is in this range, the third TLB is used.
  uint64_t quiet_first = 0, quiet_room = ~0;
  Tlb empty_tlb;  // never filled; in use while alignment is checked, so that all accesses take the slow path
  std::array<JumpCache, 2> jump_caches;
  // The blocks of calls that have not returned, the latest last. They predict where a return leads.
  static constexpr unsigned kReturns = 32;
  std::array<Block*, kReturns> returns{};
  unsigned return_count = 0;
  std::string unknown;
  std::unique_ptr<std::byte[]> scratch;  // memory for a truncated block

  uint64_t& gpr(unsigned i) { return regs.gpr[i]; }
  bool is_quiet(uint64_t address) const { return (address ^ regs.gpr[kRsp]) < quiet; }
  bool long_mode() const { return (regs.efer & efer::kLma) != 0; }
  bool protected_mode() const { return (regs.cr0 & cr0::kPe) != 0; }
  bool vm86() const { return (regs.rflags & flag::kVm86) != 0; }

  // Executes at most this many instructions.
  Exit run(uint64_t instructions);
  // Instructions since run() began. For a handler that ends its block, its own instruction is included.
  uint64_t executed() const { return static_cast<uint64_t>(slice - left); }

  // After the end of the running block, control returns to the run loop, whatever links exist.
  void end_with_block() {
    if (block == nullptr) return;
    withheld += left;
    slice -= left;
    left = 0;
  }

  uint64_t rflags() const { return (regs.rflags & ~flag::kArithmetic) | flags.arithmetic(); }
  void set_rflags(uint64_t value);  // sets all flags; for code that may change the mode
  void settle() {
    regs.rflags = rflags();
    flags.set_arithmetic(regs.rflags);
  }

  // Updates what depends on registers, after regs was replaced, or cr0, cr4, efer or a segment was changed.
  void registers_changed();
  void set_cpl(unsigned value);
  void choose_tlb();  // by privilege, by whether alignment is checked, and by whether the CPU is observed
  void check_stack() {
    if (regs.gpr[kRsp] - quiet_first >= quiet_room) change_stack();
  }
  void change_stack();
  void add_quiet(uint64_t address, const TlbEntry& entry);
  void attach(Tap* observer);
  void tell(const CpuEvent& event) {
    if (tap != nullptr) tap->event(*this, event, executed());
  }
  // The CPU continues elsewhere than where it stopped.
  void moved() {
    at_place = false;
    resume_skip = 0;
  }
  // Instructions of this run that were completed before `op`.
  uint64_t executed_before(const Op* op) const {
    return executed() - (block == nullptr ? 0 : block->count - op->number);
  }
  void forget_translations();
  // An exchange with memory has changed nothing. Returns true if the same one has failed so often that the
  // turn should end.
  bool fails_again(uint64_t address);

  // These set `fault` and return false, so that a helper can `return raise_...`.
  bool raise(Vector vector);
  bool raise(Vector vector, uint32_t code);
  bool raise_page_fault(uint64_t address, uint32_t code);

  // cpu/run.cc
  Block* next_block();   // the block at rip; nullptr if the fetch faulted
  Block* fresh_block();  // the same with one instruction only, decoded anew
  Block* within_limit(Block* whole);
  Block* shortened(const Block& whole, unsigned count);
  Block* alone(const Op& op);
  void deliver_trap();

  // cpu/interrupt.cc: deliver through the IDT. `soft`: for an INT instruction, which checks the gate's
  // privilege.
  void deliver_fault();
  bool interrupt(uint8_t vector, bool soft, bool has_code, uint32_t code, uint64_t return_rip);
  void reset(bool power_on);    // after INIT (power_on false), all CPUs but 0 wait to be started
  void start_at(uint8_t page);  // SIPI
};

// Privileged state, for handlers, loaders and debuggers (cpu/control.cc).
bool write_cr(Cpu& cpu, unsigned number, uint64_t value);
bool read_msr(Cpu& cpu, uint32_t number, uint64_t& value);
bool write_msr(Cpu& cpu, uint32_t number, uint64_t value);
void cpuid(const Cpu& cpu, uint32_t leaf, uint32_t subleaf, uint32_t out[4]);

}  // namespace slalom::vm
