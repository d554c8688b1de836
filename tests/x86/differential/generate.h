// Makes cases: random instructions of a form, in a state in which they have something to do.
#pragma once

#include "forms.h"
#include "values.h"

namespace slalom::vm::diff {

class Generator {
 public:
  // A case depends on these and nothing else.
  Generator(uint64_t seed, uint64_t number) : rng_(seed, number), values_(rng_) {}

  // False: chance did not find an instruction of that form.
  bool make(const Form& form, Case& one);
  // Starts from an instruction of the form and changes some of its bytes. The result may be no instruction,
  // or one that CPUID does not promise.
  bool mutated(const Form& form, Case& one);

  static void fill(Backgrounds& backgrounds, uint64_t seed);

 private:
  std::vector<uint8_t> encode(const Form& form);
  bool reencode(const Form& form, std::vector<uint8_t>& bytes);
  void place(Case& one, std::vector<uint8_t>& bytes);
  void fill_state(Case& one, const Decoded& in);
  void aim(Case& one, const Decoded& in, const ZydisDecodedOperand& operand);

  Rng rng_;
  Values values_;
};

}  // namespace slalom::vm::diff
