// Runs cases in the interpreter, on a CPU in user mode. The kernel consists of one landing place for each
// exception.
#pragma once

#include <memory>

#include "mutants.h"
#include "vm/cpu/cpu.h"

namespace slalom::vm::diff {

class Guest {
 public:
  explicit Guest(const Backgrounds& backgrounds);
  ~Guest();

  void run(const Case& one, Outcome& outcome);

  // nullptr: the unmodified interpreter.
  void set_mutant(const Mutant* mutant) { mutant_ = mutant; }

 private:
  class NoBus;
  void map(uint64_t address, uint64_t page, bool user, bool writable, bool execute);
  uint64_t table(uint64_t parent, uint64_t index);
  void place_code(const Case& one);
  void load(const Case& one);
  void collect(Outcome& outcome);
  uint64_t read64(uint64_t physical) const;
  void write64(uint64_t physical, uint64_t value);

  const Backgrounds& backgrounds_;
  std::unique_ptr<NoBus> bus_;
  std::unique_ptr<Ram> ram_;
  std::unique_ptr<System> system_;
  Cpu* cpu_ = nullptr;
  Registers start_;
  uint64_t next_table_;
  unsigned placed_at_ = 0, placed_ = 0;
  const Mutant* mutant_ = nullptr;
};

}  // namespace slalom::vm::diff
