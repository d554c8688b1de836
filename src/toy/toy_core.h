// ToyCore: executes the steps of a toy program. A step is one visible operation of one agent and the
// invisible instructions after it. ToyCore emits events and accesses to the sink, and keeps each agent's
// enabled flag up to date. It makes no choices: ToyMachine decides which agent runs and where to stop.
//
// After every call, all Ready agents stand before a visible instruction, unless a fault or the step limit has
// ended the execution.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toy/toy_names.h"
#include "toy/toy_program.h"
#include "toy/toy_state.h"
#include "trace/choice.h"
#include "trace/outcome.h"
#include "trace/sink.h"

namespace slalom {

class ToyCore {
 public:
  explicit ToyCore(std::shared_ptr<const ToyProgram> program);

  void reset(uint64_t max_steps);  // to the initial state; persistent cells keep their value
  void begin(EventSink& sink);     // runs every started agent up to its first visible operation

  // Executes the agent's pending operation, which must be able to run. `answer`: the value for an operation
  // that asks for one. If it asks and there is no answer, state().arity says so, and nothing else has
  // happened.
  void step(uint32_t agent, std::optional<uint32_t> answer);

  // Effects of the last step on the agent, beyond an ordinary operation.
  bool yielded() const { return yielded_; }
  bool enabled_changed() const { return enabled_changed_; }
  const std::optional<Faulted>& fault() const { return fault_; }
  bool over_limit() const { return state_.steps + state_.idle_steps >= max_steps_; }

  void check_final();  // call it when all agents have ended; sets fault() if the final check fails
  void flush();        // emits pending accesses
  EventSink* sink() const { return sink_; }

  const ToyState& state() const { return state_; }
  ToyState& state() { return state_; }
  void restore(const ToyState& state) {
    state_ = state;
    fault_.reset();
  }

  const ToyNames& names() const { return names_; }
  uint32_t find_agent(AgentId id) const;  // kNoToyIndex if there is none
  PendingOp pending(uint32_t agent) const;
  bool all_ended() const;  // no thread is left; ignores interrupts that can no longer come
  Deadlocked deadlock() const;

 private:
  struct Cell {
    uint32_t at = 0;  // index into cells or heap_cells
    ObjectId address;
    ObjectId heap;  // the heap object of the cell, if any
    bool live = true;
    bool found = false;  // false: the index is out of range, or the handle is no handle
  };

  ToyAgent& agent(uint32_t index) { return state_.agents[index]; }
  const ToyAgent& agent(uint32_t index) const { return state_.agents[index]; }
  const ToyInstruction& instruction(const ToyAgent& agent) const { return program_->code[agent.pc]; }
  int64_t value(const ToyAgent& agent, ToyOperand operand) const {
    return operand.is_constant() ? program_->constants[operand.index()]
                                 : state_.registers[agent.frame + operand.index()];
  }
  void set(const ToyAgent& agent, uint16_t dest, int64_t value) {
    state_.registers[agent.frame + dest] = value;
  }

  // Each executes one visible instruction. Returns false if it asks for a value, or faulted.
  bool execute(uint32_t self, std::optional<uint32_t> answer);
  bool memory(uint32_t self, const ToyInstruction& code);
  bool synchronise(uint32_t self, const ToyInstruction& code, std::optional<uint32_t> answer);
  bool wait(uint32_t self, uint32_t condvar);
  bool signal(uint32_t self, OpKind kind, uint32_t condvar, std::optional<uint32_t> answer);
  bool arrive(uint32_t self, uint32_t barrier);
  bool spawn(uint32_t self, const ToyInstruction& code);
  bool join(uint32_t self, const ToyInstruction& code);
  bool choose(uint32_t self, const ToyInstruction& code, std::optional<uint32_t> answer);
  bool allocate(uint32_t self, const ToyInstruction& code);
  bool free(uint32_t self, const ToyInstruction& code);
  void mask(uint32_t self, OpKind kind);
  void enter_context(uint32_t self);  // the first operation of an interrupt or timer
  void change_context(uint32_t self, const ToyInstruction& code);  // raise, arm, cancel

  void run_invisible(uint32_t self);
  void end(uint32_t self);
  // These return false, so that an operation can return their result.
  bool fail(uint32_t self, Faulted::Kind kind, std::string what);
  bool bad_access(uint32_t self, const ToyInstruction& code);
  bool not_held(uint32_t self, OpKind kind, uint32_t object);
  uint32_t add_agent(AgentId id, uint32_t block, int64_t copy);
  void wake(uint32_t self, uint32_t other, ObjectId object);

  bool can_run(const ToyAgent& agent) const;
  void refresh(uint32_t index);
  void refresh_all();

  Cell resolve(const ToyAgent& agent, const ToyInstruction& code) const;
  std::optional<uint32_t> sync_index(const ToyAgent& agent, const ToyInstruction& code) const;
  uint32_t find_context(uint32_t block) const;  // the agent of an interrupt or timer
  uint32_t find_heap(int64_t handle) const;
  uint64_t sync_state(uint32_t object, OpKind kind) const;
  std::vector<AgentId> holders(const ToyAgent& agent) const;

  void tell(uint32_t self, OpKind kind, ObjectId object, uint64_t state = 0, int64_t value = 0,
            AgentId other = {}, std::string_view text = {});
  void record(const ToyAgent& agent, OpKind kind, ObjectId address, int64_t value, bool wrote);

  std::shared_ptr<const ToyProgram> program_;
  ToyNames names_;
  ToyState initial_;
  ToyState state_;
  uint64_t max_steps_ = 0;
  EventSink* sink_ = nullptr;
  std::vector<Access> accesses_;
  BatchHeader batch_;
  bool yielded_ = false;
  bool affects_others_ = false;  // the step may have enabled or disabled other agents
  bool enabled_changed_ = false;
  std::optional<Faulted> fault_;
};

}  // namespace slalom
