// Differ: runs cases on both sides and counts the results.
#pragma once

#include <functional>
#include <memory>

#include "generate.h"
#include "guest.h"
#include "native.h"
#include "text.h"

namespace slalom::vm::diff {

struct FormCount {
  uint64_t cases = 0;  // of the form itself
  uint64_t near = 0;   // of mutated bytes of the form
  uint64_t mismatches = 0;
  uint64_t faults = 0;  // cases that ended with an exception other than the breakpoint
};

struct Mismatch {
  size_t form = 0;
  Case one;  // minimised
  std::vector<Difference> differences;
};

class Differ {
 public:
  static Result<std::unique_ptr<Differ>> make(uint64_t seed);

  Guest& guest() { return *guest_; }
  // Makes this many cases, taking the forms in turn, and compares them. Reports each mismatch, minimised, but
  // at most `shown` for each form.
  Result<void> run(const std::vector<Form>& forms, uint64_t cases, unsigned shown,
                   const std::function<void(const Mismatch&)>& report);
  const std::vector<FormCount>& counts() const { return counts_; }
  uint64_t total() const { return total_; }
  // Cases in which the host behaved as only a CPU of another vendor does.
  uint64_t vendors() const { return vendors_; }

  Result<Verdict> check(const Case& one);

 private:
  Result<void> flush(unsigned shown, const std::function<void(const Mismatch&)>& report);
  bool is_refused(const Case& one);
  Result<void> shrink(Case& one, std::vector<Difference>& differences);

  uint64_t seed_ = 0;
  Backgrounds backgrounds_;
  std::unique_ptr<Guest> guest_;
  std::unique_ptr<Native> native_;
  std::vector<FormCount> counts_;
  uint64_t total_ = 0, vendors_ = 0;

  // The batch that is being filled.
  unsigned pending_ = 0;
  struct Origin {
    size_t form = 0;
    bool near = false;
  };
  std::array<Origin, Exchange::kBatch> origins_{};
  std::vector<Outcome> outcomes_ = std::vector<Outcome>(Exchange::kBatch);
};

}  // namespace slalom::vm::diff
