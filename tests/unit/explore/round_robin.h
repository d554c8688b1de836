// The example of docs/howto-strategy.md, word for word. Tests use it as a strategy that learns nothing and
// ends.
#pragma once

#include "base/check.h"
#include "explore/strategy.h"

namespace slalom {

// round-robin: each agent runs `quantum` operations, then the next agent in the order of ids. The quantum is
// 1, 2, 3 ... from one execution to the next.
class RoundRobin : public Strategy {
 public:
  explicit RoundRobin(uint64_t executions) : executions_(executions) {}

  std::string name() const override { return "round robin"; }
  Recording recording() const override { return Recording::Schedule; }

  std::optional<Task> begin() override {
    if (begun_ == executions_) return std::nullopt;
    Task task;
    task.index = begun_++;
    return task;
  }
  std::unique_ptr<Walker> walker(const Task& task) const override {
    return std::make_unique<Walk>(task.index + 1);  // the task carries everything that the walker needs
  }
  void end(const Task&, const Execution&) override { ++ended_; }

  Coverage coverage() const override {
    Coverage coverage;
    coverage.statement = fmt::format("round robin: the first {} quanta, nothing else.", ended_);
    return coverage;
  }
  void save(ByteWriter& out) const override { out.u64(ended_); }
  bool load(ByteReader& in) override {
    begun_ = ended_ = in.u64();
    return in.ok();
  }

 private:
  class Walk : public Walker {
   public:
    explicit Walk(uint64_t quantum) : quantum_(quantum) {}
    std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                             const Execution&) override {
      if (point.kind == ChoiceKind::Data) return Decision{point.current};
      if (point.kind == ChoiceKind::Running && point.position.raw - since_ < quantum_)
        return Decision{next_in_order(point, options).agent};
      since_ = point.position.raw;
      for (const Option& option : options)
        if (option.agent > point.current) return Decision{option.agent};
      return Decision{options.front().agent};
    }

   private:
    uint64_t quantum_;
    uint64_t since_ = 0;
  };

  uint64_t executions_;
  uint64_t begun_ = 0;
  uint64_t ended_ = 0;
};

}  // namespace slalom
