// LinuxTasks: finds the task that runs on a CPU, by the kernel's own per-CPU pointer to it.
//
// The positions of that pointer and of members come from the symbols and types of this kernel. Tasks are
// unknown if the kernel has no types. All values come from guest memory and are only for display.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vm/guests/linux/guest_kernel.h"

namespace slalom::vm {

struct GuestTask {
  uint64_t address = 0;  // of its task_struct; 0 if unknown
  uint32_t pid = 0;
  std::string comm;

  std::string text() const;  // "sh/42"; "?" if unknown
  bool operator==(const GuestTask&) const = default;
};

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
