#include "explore/strategies/sampling.h"

#include <cmath>

namespace slalom {

std::optional<Task> Sampler::begin() {
  if (next_ <= 1 || next_ % kEpoch == 0) {
    if (ended_ < next_) return std::nullopt;
    start_epoch();
  }
  Task task;
  task.index = next_++;
  prepare(task);
  return task;
}

void Sampler::end(const Task& task, const Execution& execution) {
  ++ended_;
  if (!execution.divergence && ended_by_itself(execution.outcome)) ++complete_;
  learn(task, execution);
}

Coverage Sampler::coverage() const {
  Coverage coverage;
  coverage.missed = complete_ < 3 ? 1 : 0.05;
  coverage.statement =
      complete_ < 3 ? fmt::format("{}: too few executions to say anything.", name())
                    // (1 - 3/N)^N <= e^-3 < 5 %
                    : fmt::format(
                          "{}: {} executions; what shows in at least {} of such executions was missed with "
                          "probability at most 5 %. What is rarer is not covered.",
                          name(), with_commas(complete_), percent(3.0 / static_cast<double>(complete_)));
  return coverage;
}

void Sampler::save(ByteWriter& out) const {
  out.u64(next_);
  out.u64(complete_);
}

bool Sampler::load(ByteReader& in) {
  next_ = ended_ = in.u64();
  complete_ = in.u64();
  return in.ok();
}

bool ended_by_itself(const Outcome& outcome) {
  return std::visit(
      Overloaded{[](const Exited&) { return true; }, [](const Deadlocked&) { return true; },
                 [](const Faulted&) { return true; }, [](const LimitReached&) { return false; },
                 [](const Abandoned&) { return false; }, [](const ToolError&) { return false; }},
      outcome);
}

std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

std::string percent(double probability) {
  const double value = 100 * probability;
  if (value <= 0) return "0 %";
  if (value < 0.001) return "0.001 %";  // nobody reads 5.6e-279
  // Prints two digits. Printing must not make a bound smaller. The tiny term keeps numbers that were exact
  // before.
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return fmt::format("{:.3g} %", std::ceil(value / unit - 1e-6) * unit);
}

}  // namespace slalom
