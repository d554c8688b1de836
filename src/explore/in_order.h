// InOrder: the walker of the default order: an agent goes on as long as it can, then the next one does. Data
// choices are 0.
#pragma once

#include "explore/strategy.h"

namespace slalom {

class InOrder : public Walker {
 public:
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return Decision{point.current};
    return Decision{next_in_order(point, options).agent};
  }
  void rule(ChoiceRule& to) const override { to.kind = ChoiceRule::Kind::InOrder; }
};

}  // namespace slalom
