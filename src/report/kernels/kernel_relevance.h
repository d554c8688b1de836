// Which accesses of a kernel's execution a reader wants to see: those to memory that several contexts use and
// somebody writes, without locks, reference counts, and what runs beneath everything (scheduler, timekeeping,
// RCU, allocators, printk).
//
// A guess, for showing less: nothing is concluded from it. Memory is compared by its physical address, since
// processes use the same virtual ones for their own.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/kernels/kernel_trace.h"
#include "trace/names.h"

namespace slalom {

enum class Relevance : uint8_t {
  None,
  Shared,       // touches what another context touches, too
  Communicates  // and is next to an access of another one: reads what that wrote, writes what that has read
};

// Of each operation of the trace.
std::vector<Relevance> find_relevance(const KernelTrace& trace, const Names& names);

// Does a function belong to what runs beneath everything? "module:function" never does.
bool is_infrastructure(std::string_view function);

// Is a variable, by its name, one that every CPU keeps of itself: preemption count, current task, stacks?
bool is_bookkeeping(std::string_view variable);

// "shmem_write_end+0x54" -> "shmem_write_end"
std::string_view function_of(std::string_view place);

}  // namespace slalom
