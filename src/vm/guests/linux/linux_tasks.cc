#include "vm/guests/linux/linux_tasks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/little_endian.h"
#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {

std::string GuestTask::text() const {
  return address == 0 ? "?" : fmt::format("{}/{}", comm, pid);
}

LinuxTasks::LinuxTasks(const GuestKernel& kernel) {
  if (!kernel.types) return;
  const auto offsets = kernel.symbols.address_of("__per_cpu_offset");
  const auto pid = kernel.types->field("task_struct.pid");
  const auto comm = kernel.types->field("task_struct.comm");
  // Linux 6.2 to 6.14 keep it in a struct of hot variables.
  std::optional<uint64_t> current = kernel.symbols.address_of("current_task");
  if (!current) {
    const auto hot = kernel.symbols.address_of("pcpu_hot");
    const auto member = kernel.types->field("pcpu_hot.current_task");
    if (hot && member) current = *hot + member->offset;
  }
  if (!offsets || !pid || !comm || !current) return;
  offsets_ = *offsets;
  current_ = *current;
  pid_ = pid->offset;
  comm_ = comm->offset;
  comm_size_ = std::min<uint64_t>(comm->size, 64);
}

std::optional<uint64_t> LinuxTasks::per_cpu(const Cpu& cpu, uint64_t variable) const {
  if (offsets_ == 0) return std::nullopt;
  const std::optional<uint64_t> offset = read_word(cpu, offsets_ + 8 * uint64_t{cpu.id});
  if (!offset) return std::nullopt;
  return *offset + variable;
}

uint64_t LinuxTasks::current(const Cpu& cpu) const {
  if (current_ == 0) return 0;
  const std::optional<uint64_t> place = per_cpu(cpu, current_);
  return place ? read_word(cpu, *place).value_or(0) : 0;
}

GuestTask LinuxTasks::read(const Cpu& cpu, uint64_t task) const {
  uint8_t pid[4];
  if (task == 0 || !read_all(cpu, task + pid_, pid)) return {};
  GuestTask read{.address = task, .pid = *get_le<uint32_t>(pid, 0)};
  read.comm = read_string(cpu, task + comm_, comm_size_);
  for (char& c : read.comm)
    if (c < ' ' || c > '~') c = '?';
  return read;
}

}  // namespace slalom::vm
