// AllocationText: what the source line of an allocation says about the new object, or the line of a release
// about the freed one. Extracts words only; process/program_objects.cc finds out what they mean, from debug
// information.
#pragma once

#include <string>

namespace slalom {

struct AllocationText {
  enum class Form {
    Unknown,
    One,     // new T, make_unique<T>()
    Array,   // new T[n]
    Shared,  // make_shared<T>(): the object lies behind its counts
    Sizeof,  // malloc(n * sizeof(T)): one or more objects
    Tail,    // malloc(sizeof(T) + n): one object, and other data behind it
  } form = Form::Unknown;
  std::string type;      // "node"; empty if the line names no type, a template or several types
  std::string pointer;   // "n" of sizeof *n
  std::string assigned;  // "q->head", the pointer that is set or freed; empty if the line names none
};

AllocationText read_allocation(const std::string& line);

}  // namespace slalom
