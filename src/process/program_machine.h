// ProgramMachine: an ordinary program as a Machine. Its threads are the agents. Each execution is a fork of
// the same process, which has run the program's set-up (process/set_up.h) or, if that cannot be shared, is
// stopped at the entry of main().
//
// No snapshots: an execution always runs from there. Every operation of the threading API is a choice point,
// except (with ChoicePolicy::Where::Sync) operations of a thread that is the only one left. The machine
// checks everything that the target writes into the shared memory: invalid data is a ToolError, never a crash
// of slalom.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "process/added_modules.h"
#include "process/launch/program.h"
#include "process/launch/zygote.h"
#include "process/names/program_names.h"
#include "process/names/stack_names.h"
#include "process/program_scope.h"
#include "process/set_up.h"

namespace slalom {

class ProgramMachine final : public Machine, private OptionSource {
 public:
  static Result<std::unique_ptr<ProgramMachine>> make(const Program& program, const LaunchOptions& options,
                                                      std::shared_ptr<ProgramNames> names);

  Result<void> reset(const Inputs& inputs) override;
  Stop start(EventSink& sink) override;
  Stop resume(Decision decision) override;
  Position position() const override { return Position{steps_}; }
  std::vector<Option> blocked() const override;
  uint64_t state_hash() const override { return hash_; }
  EndFacts ending() const override;
  bool hashes_cheaply() const override { return true; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return *names_; }

 private:
  // An agent as of the last stop.
  struct AgentView {
    AgentId id;
    uint64_t ops = 0;
    PendingOp pending;
    preload::Slot::State state = preload::Slot::State::Ended;
  };

  ProgramMachine(const Program& program, const LaunchOptions& options, std::shared_ptr<ProgramNames> names)
      : program_(program), options_(options), names_(std::move(names)) {}

  std::span<const Option> options() const override { return enabled_; }
  Result<void> launch();
  void prepare_channel();
  void run_set_up();                           // once; later executions begin at its end
  std::optional<std::string> follow_set_up();  // until it ends; returns why it cannot be used
  void drop_set_up(const std::string& why);
  bool has_set_up_errors(const std::optional<ErrorLog>& errors) const;  // whether set-up had these errors
  void take_up_set_up();
  void emit_set_up_events();  // emits the events of set-up
  uint64_t step_limit() const;
  void note_end(const Outcome& outcome);
  Stop run();  // until the next choice point or the end
  Stop finish(Outcome outcome);
  Stop finish_running(Outcome outcome);  // ends the execution first
  std::optional<Outcome> wait();
  uint32_t find_running_agent();
  void end_execution();
  Result<void> add_module();
  void write_places();
  void name_stacks();
  void make_stable();
  std::optional<std::string> read_agents();
  std::optional<std::string> read_stop();
  std::optional<std::string> read_passed(const preload::Record& stop);
  std::optional<std::string> read_records();
  bool read_error(const preload::Record& record);
  void repeat_errors();
  bool is_choice_point(ChoiceKind kind);
  ChoicePoint choice_point() const;
  Outcome conclude();
  // Replaces a failure by a ToolError if the execution lacked threads, because such a failure is no bug of
  // the program.
  Outcome unless_threads_missing(Outcome outcome) const;
  Outcome judge(uint32_t status);
  Deadlocked deadlock() const;
  uint64_t next_stop(const AgentView& agent) const;
  void let_run(uint32_t agent);
  bool uses_later_choices() const;
  void write_later_choices(const LaterChoices& later);
  std::string text_at(uint32_t text) const;
  const AgentView* find(AgentId id) const;

  Program program_;
  LaunchOptions options_;
  std::shared_ptr<ProgramNames> names_;
  std::unique_ptr<Zygote> zygote_;
  std::optional<SetUp> set_up_;
  std::optional<StackNames> stack_names_;  // while the trace is kept
  bool may_set_up_ = true;                 // false: executions begin at main()
  ProgramScope scope_;
  AddedModules added_;
  Inputs inputs_;
  EventSink* sink_ = nullptr;
  bool running_ = false;  // stopped at a choice point

  // The stop at which the target waits for slalom.
  struct Held {
    std::optional<preload::Phase> phase;  // empty if it runs or does not exist
    uint32_t agent = 0;
  } held_;
  uint32_t records_ = 0;    // number of the channel's records read so far
  uint32_t runs_ = 0;       // the running agent, or the last one when the process ended
  bool at_passed_ = false;  // the last stop read is one that the target has passed,
  uint32_t passed_to_ = 0;  // after which this agent went on

  std::vector<AgentView> agents_;  // by index
  std::vector<uint32_t> order_;    // indexes in the order of ids
  std::vector<Option> enabled_;    // in the order of ids
  ChoiceKind kind_ = ChoiceKind::Start;
  uint32_t current_ = 0;
  uint32_t arity_ = 0;
  uint32_t keep_ = 0;          // of the last decision's forecast
  uint64_t keep_enabled_ = 0;  // hash of the agents that could run there
  uint32_t passed_ = 0;        // choice points since then at which the forecast kept the agent
  uint64_t steps_ = 0;
  uint64_t hash_ = 0;
  std::vector<Access> accesses_;
  ErrorLog errors_;

  // Freed heap blocks with their sizes, as long as the target keeps them from being allocated again.
  void note_heap(const preload::Record& record);
  std::optional<Event> use_of_freed(const preload::Record& record) const;
  std::map<uint64_t, uint64_t> freed_;
  std::deque<std::pair<uint64_t, uint64_t>> kept_;  // the same, in the order in which they were freed
  uint64_t kept_bytes_ = 0;
};

}  // namespace slalom
