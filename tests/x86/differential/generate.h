// Makes cases: random instructions of a form, in states in which they have an effect.
#pragma once

#include "forms.h"
#include "values.h"

namespace slalom::vm::diff {

class Generator {
 public:
  // A case depends only on these two numbers.
  Generator(uint64_t seed, uint64_t number) : rng_(seed, number), values_(rng_) {}

  // Returns false if no instruction of the form was found by chance.
  bool make(const Form& form, Case& one);
  // Changes some bytes of an instruction of the form. The result may be no instruction, or one that CPUID
  // does not advertise.
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
