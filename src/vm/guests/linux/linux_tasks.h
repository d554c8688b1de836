// LinuxTasks: who runs on a CPU, as the kernel itself knows it: its per-CPU pointer to the current task.
//
// Where that pointer and its members lie is taken from the symbols and types of this very kernel. A kernel
// without types has no tasks. Values come from guest memory and are only shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vm/guests/linux/guest_kernel.h"

namespace slalom::vm {

struct GuestTask {
  uint64_t address = 0;  // of its task_struct; 0: not known
  uint32_t pid = 0;
  std::string comm;

  std::string text() const;  // "sh/42"; "?" if it is not known
  bool operator==(const GuestTask&) const = default;
};

class LinuxTasks {
 public:
  explicit LinuxTasks(const GuestKernel& kernel);
  bool known() const { return current_ != 0; }
  // The address alone: quick. 0: not to be read now.
  uint64_t current(const Cpu& cpu) const;
  GuestTask read(const Cpu& cpu, uint64_t task) const;
  // A CPU's own copy of a per-CPU variable. Nothing before the kernel has set them up.
  std::optional<uint64_t> per_cpu(const Cpu& cpu, uint64_t variable) const;

 private:
  uint64_t offsets_ = 0;  // __per_cpu_offset
  uint64_t current_ = 0;
  uint64_t pid_ = 0, comm_ = 0, comm_size_ = 0;
};

}  // namespace slalom::vm
