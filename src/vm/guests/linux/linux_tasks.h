// LinuxTasks: finds the task that runs on a CPU, by the kernel's own per-CPU pointer to it.
//
// The positions of that pointer and of members come from the symbols and types of this kernel. Tasks are
// unknown if the kernel has no types. All values come from guest memory and are only for display.
#pragma once

#include <cstdint>
#include <optional>

#include "vm/control/guest_model.h"
#include "vm/guests/linux/linux_kernel.h"

namespace slalom::vm {

class LinuxTasks {
 public:
  explicit LinuxTasks(const GuestKernel& kernel);
  bool known() const { return current_ != 0; }
  // The task's address only, which is quick to find. 0 if it cannot be read now.
  uint64_t current(const Cpu& cpu) const;
  GuestTask read(const Cpu& cpu, uint64_t task) const;
  // The address of a CPU's own copy of a per-CPU variable. Empty before the kernel has set up per-CPU memory.
  std::optional<uint64_t> per_cpu(const Cpu& cpu, uint64_t variable) const;

 private:
  uint64_t offsets_ = 0;  // __per_cpu_offset
  uint64_t current_ = 0;
  uint64_t pid_ = 0, comm_ = 0, comm_size_ = 0;
};

}  // namespace slalom::vm
