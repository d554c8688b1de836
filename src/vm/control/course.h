// Course: everything that a KernelMachine did to its PC in one execution, in order.
//
// A course and its hypercall answers take the same machine through the same states again, without decisions,
// observation or guesses. A debugger needs that, because it attaches its own tap (vm/replay/scheduled_run.h).
// A course is valid only for the machine that recorded it, in the same process. To keep an execution, save
// its schedule instead.
#pragma once

#include <cstdint>
#include <vector>

namespace slalom::vm {

struct Course {
  struct Leg {
    enum class Kind : uint8_t {
      Run,       // run CPU `cpu` until it has retired `value` instructions in total
      Deliver,   // deliver interrupt `value` to CPU `cpu`
      Timer,     // advance time to the timer of CPU `cpu`
      AnyTimer,  // advance time to the next timer
      Answer,    // set RAX of CPU `cpu` to `value`, the answer of a hypercall
      Natural,   // let all CPUs take turns until `value` instructions are executed in total (the check)
    };
    Kind kind = Kind::Run;
    unsigned cpu = 0;
    uint64_t value = 0;
    bool operator==(const Leg&) const = default;
  };

  std::vector<Leg> legs;
  uint64_t begin = 0, end = 0;  // instructions of all CPUs since the machine was made
  uint64_t end_hash = 0;        // of the PC alone

  void add(const Leg& leg) {
    // Merge consecutive runs of one CPU: the stop between them did not matter.
    if (leg.kind == Leg::Kind::Run && !legs.empty() && legs.back().kind == leg.kind &&
        legs.back().cpu == leg.cpu)
      legs.back() = leg;
    else
      legs.push_back(leg);
  }
};

// Adds legs to a course, if a caller has asked for one.
class CourseRecorder {
 public:
  void record_into(Course* course) { course_ = course; }
  void begin(uint64_t executed) {
    if (course_ != nullptr) *course_ = {.legs = {}, .begin = executed, .end = 0, .end_hash = 0};
  }
  void add(Course::Leg::Kind kind, unsigned cpu, uint64_t value) {
    if (course_ != nullptr) course_->add({kind, cpu, value});
  }
  // The course whose end is to be filled in; nullptr if none is recorded.
  Course* course() const { return course_; }

 private:
  Course* course_ = nullptr;
};

}  // namespace slalom::vm
