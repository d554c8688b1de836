// Determines which accesses of a kernel's execution a reader wants to see: accesses to memory that several
// contexts use and at least one writes. It excludes locks, reference counts, and the infrastructure below
// everything (scheduler, timekeeping, RCU, allocators, printk).
//
// A heuristic for shorter reports: no conclusion depends on it. Memory is compared by physical address,
// because processes use the same virtual addresses for different memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/kernels/kernel_trace.h"
#include "trace/names.h"

namespace slalom {

enum class Relevance : uint8_t {
  None,
  Shared,       // another context touches the memory too
  Communicates  // also next to another context's access: reads what it wrote, or writes what it has read
};

// Returns the relevance of each operation of the trace.
std::vector<Relevance> find_relevance(const KernelTrace& trace, const Names& names);

// Returns whether a function belongs to the infrastructure. "module:function" never does.
bool is_infrastructure(std::string_view function);

// Returns whether a variable, by its name, is private data of each CPU: preemption count, current task,
// stacks.
bool is_bookkeeping(std::string_view variable);

// "shmem_write_end+0x54" -> "shmem_write_end"
std::string_view function_of(std::string_view place);

}  // namespace slalom
