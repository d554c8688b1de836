#include "detect/core/detector.h"

#include <algorithm>

namespace slalom {

void Detector::report(Verdict verdict) {
  const bool known = std::any_of(found_.begin(), found_.end(),
                                 [&](const Verdict& other) { return other.title == verdict.title; });
  if (!known) found_.push_back(std::move(verdict));
}

}  // namespace slalom
