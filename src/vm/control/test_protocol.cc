#include "vm/control/test_protocol.h"

#include <utility>

#include "guest/slalom.h"
#include "vm/control/hypercall.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMostResults = uint64_t{1} << 20;
constexpr uint64_t kMostValues = 1024;  // of one SLALOM_CHOOSE

}  // namespace

void TestProtocol::begin(std::shared_ptr<const TestInput> test) {
  test_ = std::move(test);
  state_ = State{};
  state_.results.resize(options_.flows);
}

void TestProtocol::choose(uint32_t value) {
  pc_.cpu(contexts_.current()).gpr(kRax) = value;
  state_.arity = 0;
}

// Returns false for a note beyond the limit, which ends the execution: recorders keep all notes in memory.
bool TestProtocol::leave_note(Cpu& cpu, const std::string& text) {
  state_.note_bytes += text.size() + sizeof(Event);
  if (notes_too_much()) return false;
  tap_.flush();
  events_.emit(pc_.executed(), cpu.id, OpKind::Note, cpu.gpr(kRip), {}, 0, text);
  return true;
}

bool TestProtocol::on_hypercall(Cpu& cpu) {
  const Hypercall call = hypercall_of(cpu);
  // A CPU whose flow is done repeats SLALOM_DONE after each interrupt. That is no progress.
  const bool again = call.number == SLALOM_DONE && cpu.id < options_.flows && contexts_.cpu(cpu.id).done;
  if (!again) events_.note_progress();
  switch (call.number) {
    case SLALOM_PRESENT:
      answer(cpu, SLALOM_VERSION);
      return true;
    case SLALOM_READY:
      answer(cpu, 0);
      return true;
    case SLALOM_PROGRAM: {
      std::optional<std::span<const uint8_t>> program;
      if (test_ != nullptr && call.a < test_->programs.size()) program = test_->programs[call.a];
      give_bytes(cpu, program, call.b, call.c);
      return true;
    }
    case SLALOM_DONE: {
      answer(cpu, events_.natural() ? 0 : 1);
      if (events_.natural() || call.a >= options_.flows || cpu.id >= options_.flows) return true;
      KernelContexts::CpuState& state = contexts_.cpu(cpu.id);
      if (!state.done)
        state_.results[call.a] =
            read_buffer(cpu, call.b, call.c, kMostResults).value_or(std::vector<uint8_t>{});
      state.done = state.parked = true;
      return false;
    }
    case SLALOM_CHECKED:
      state_.checked = static_cast<int64_t>(call.a);
      return false;
    case SLALOM_CHOOSE:
      answer(cpu, 0);
      if (events_.natural() || call.a < 2 || call.a > kMostValues) return true;
      state_.arity = static_cast<uint32_t>(call.a);
      return false;
    case SLALOM_NOTE:
      return leave_note(cpu, read_text(cpu, call.a, call.b));
    case SLALOM_FAIL:
      state_.failure = read_text(cpu, call.a, call.b);
      state_.failed_part = call.c;
      return false;
    case SLALOM_INPUT:
      give_bytes(cpu, std::nullopt, call.b, call.c);
      return true;
    default:  // SLALOM_FLOWS, SLALOM_OUTPUT, and calls of other versions
      return true;
  }
}

}  // namespace slalom::vm
