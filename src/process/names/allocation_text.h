// AllocationText: what the source line of an allocation says about the object that it makes, or that of a
// release about the one that it ends. Words only: what they mean there is the debug information's business
// (process/names/program_objects.cc).
#pragma once

#include <string>

namespace slalom {

struct AllocationText {
  enum class Form {
    Unknown,
    One,     // new T, make_unique<T>()
    Array,   // new T[n]
    Shared,  // make_shared<T>(): the object lies behind its counts
    Sizeof,  // malloc(n * sizeof(T)): one or more
    Tail,    // malloc(sizeof(T) + n): one, and something behind it
  } form = Form::Unknown;
  std::string type;      // "node"; empty: not said, or of a template, or more than one
  std::string pointer;   // "n" of sizeof *n
  std::string assigned;  // "q->head", what becomes, or is, the pointer to it; empty: not said
};

AllocationText read_allocation(const std::string& line);

}  // namespace slalom
