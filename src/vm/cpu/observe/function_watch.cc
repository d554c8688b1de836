#include "vm/cpu/observe/function_watch.h"

#include <algorithm>
#include <utility>

#include "trace/op.h"
#include "vm/cpu/cpu.h"
#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {
namespace {

// Linux's argument registers.
constexpr unsigned kArgument[6] = {kRdi, kRsi, kRdx, kRcx, 8, 9};

// Restored frames are freed but were not taken from here, so there must be a limit.
constexpr size_t kMostSpare = 256;

}  // namespace

void FunctionWatch::at_block(Cpu& cpu, Tap& tap, uint64_t rip, uint8_t transfer, uint64_t executed) {
  if (cpu.cpl != 0) return;
  if (transfer == static_cast<uint8_t>(OpKind::Return)) leave(cpu, tap, rip, executed);
  if (may_begin(rip) && entries_.contains(rip))
    enter(cpu, tap, rip, transfer == static_cast<uint8_t>(OpKind::Call), executed);
}

std::vector<FunctionWatch::Frame>& FunctionWatch::frames_at(uint64_t stack) {
  open_sieve_ |= open_bit(stack);
  const auto after = open_.lower_bound(stack);
  if (after != open_.end() && after->first == stack) return after->second;
  if (spare_.empty()) return open_.try_emplace(after, stack)->second;
  spare_.back().key() = stack;
  const auto added = open_.insert(after, std::move(spare_.back()));
  spare_.pop_back();
  return added->second;
}

void FunctionWatch::enter(Cpu& cpu, Tap& tap, uint64_t rip, bool called, uint64_t executed) {
  const uint64_t stack = cpu.gpr(kRsp), step = tap.base_step + executed;
  const uint64_t retired = cpu.regs.retired + executed;
  std::vector<Frame>& frames = frames_at(stack);
  Frame frame{
      .function = rip, .return_address = read_word(cpu, stack).value_or(0), .step = step, .retired = retired};
  // A block may begin twice, if the CPU had to stop before its first instruction. Other CPUs, or an interrupt
  // on this one, may have run in between.
  if (!frames.empty() && frames.back().function == rip &&
      (frames.back().retired == retired || (!called && frames.back().return_address == frame.return_address)))
    return;
  // An older call with the same stack pointer never returned.
  if (called) frames.clear();
  // A function that was jumped to returns where the first function of the chain would. Frames with other
  // return addresses are stale.
  std::erase_if(frames, [&](const Frame& old) { return old.return_address != frame.return_address; });
  for (unsigned i = 0; i < 6; ++i) frame.arguments[i] = cpu.gpr(kArgument[i]);
  frames.push_back(frame);
  CpuEvent event{.kind = CpuEvent::Kind::FunctionEntry,
                 .pc = rip,
                 .number = frame.return_address,
                 .stack = stack,
                 .since = step};
  std::copy_n(frame.arguments, 6, event.arguments);
  tap.event(cpu, event, executed);
}

void FunctionWatch::leave(Cpu& cpu, Tap& tap, uint64_t rip, uint64_t executed) {
  const auto found = open_.find(cpu.gpr(kRsp) - 8);
  if (found == open_.end()) return;
  const uint64_t stack = found->first;
  Open::node_type node = open_.extract(found);
  sieve_open();
  std::vector<Frame>& frames = node.mapped();
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->return_address != rip) continue;
    CpuEvent event{.kind = CpuEvent::Kind::FunctionReturn,
                   .pc = frame->function,
                   .number = rip,
                   .value = cpu.gpr(kRax),
                   .stack = stack,
                   .since = frame->step};
    std::copy_n(frame->arguments, 6, event.arguments);
    tap.event(cpu, event, executed);
  }
  frames.clear();
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(node));
}

}  // namespace slalom::vm
