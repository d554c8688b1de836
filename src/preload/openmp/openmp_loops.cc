// What threads of a team share out among them: loops, sections and single blocks; and the parts of loops that
// are executed in order.
#include <stdarg.h>

#include "preload/openmp/openmp.h"
#include "preload/runtime/raw.h"

namespace slalom::preload {
namespace {

Team& team() {
  return openmp_state().team;
}

void take_next(uint64_t pc, uint64_t) {
  openmp_claim(openmp_object(OpenMpObject::Loop, team().loop), pc);
}
void begin_loop(uint64_t pc, uint64_t first) {
  team().loop = combine(team().id, ++team().loops);
  take_next(pc, first);
}
void touch_cancellation(uint64_t pc, uint64_t) {
  openmp_claim(openmp_object(OpenMpObject::Cancellation, team().id), pc);
}

// The parts of a loop that are executed one after the other, by their number: each comes after the one
// before. Which number that is, is kept for so many loops at a time.
struct OrderedParts {
  uint64_t loop;
  uint64_t done;
  uint64_t turns;  // how often a thread has left its turn to the next one
};
constinit OrderedParts ordered_parts[256] = {};

OrderedParts& ordered_in(uint64_t loop) {
  OrderedParts& parts = ordered_parts[loop % 256];
  if (parts.loop != loop) parts = {loop, 0, 0};
  return parts;
}
uint64_t ordered_part() {
  const OrderedParts& parts = ordered_in(team().loop);
  return openmp_object(OpenMpObject::Ordered, combine(parts.loop, parts.done));
}
// libgomp lets the next thread go on not at the end of such a part, but when the thread takes the next piece
// of the loop. That orders nothing, as far as OpenMP is concerned: it is just that the next one cannot come
// before it.
constexpr uint64_t kNotYet = 2;  // for CpuUse
uint64_t turn(const OrderedParts& parts) {
  return openmp_object(OpenMpObject::Ordered, combine(parts.loop, parts.turns, 1));
}
void take_next_in_order(uint64_t pc, uint64_t first) {
  take_next(pc, first);
  OrderedParts& parts = ordered_in(team().loop);
  ++parts.turns;
  runtime().tell(OpKind::Claim, turn(parts), kNotYet);
}
void end_ordered(uint64_t pc, uint64_t) {
  runtime().set_place(pc);
  ++ordered_in(team().loop).done;
  openmp_release(ordered_part());
}

constexpr uint32_t kMostCounters = 8;

// Loops whose iterations wait for others (depend(sink)) until these have said that they are that far
// (depend(source)). libgomp would look for that again and again.
void begin_waiting_loop(uint64_t pc, uint64_t counters) {
  begin_loop(pc, counters);
  if (counters > kMostCounters) runtime().note_uncontrolled(Uncontrolled::OpenMp);
  team().counters = static_cast<uint32_t>(counters < kMostCounters ? counters : kMostCounters);
}

// Iterations that have, by hashes of their loop and counters. Never removed.
class Reached {
 public:
  bool has(uint64_t iteration) const { return slots_[find(iteration)] == iteration; }
  bool add(uint64_t iteration) {  // false: there are too many
    if (count_ == kMost / 2) return false;
    uint64_t& slot = slots_[find(iteration)];
    count_ += slot == 0;
    slot = iteration;
    return true;
  }

 private:
  static constexpr uint32_t kMost = 1 << 15;
  uint32_t find(uint64_t iteration) const {
    auto at = static_cast<uint32_t>(iteration % kMost);
    while (slots_[at] != 0 && slots_[at] != iteration) at = (at + 1) % kMost;
    return at;
  }
  uint64_t slots_[kMost];
  uint32_t count_;
};
constinit Reached reached = {};

struct IterationWait : KernelWait {
  uint64_t iteration;
};

void reach(uint64_t iteration, uint64_t pc) {
  Runtime& rt = runtime();
  const uint64_t object = openmp_object(OpenMpObject::Ordered, iteration);
  openmp_arrive(OpKind::Release, object, pc);
  openmp_release(object);
  if (!reached.add(iteration)) rt.note_uncontrolled(Uncontrolled::OpenMp);
  rt.retire();
}

void wait_for_iteration(uint64_t iteration, uint64_t pc) {
  Runtime& rt = runtime();
  const uint64_t object = openmp_object(OpenMpObject::Ordered, iteration);
  IterationWait wait{
      {[](const KernelWait& one) { return reached.has(static_cast<const IterationWait&>(one).iteration); }},
      iteration};
  openmp_arrive(OpKind::Acquire, object, pc, Need::Kernel, &wait);
  openmp_acquire(object);
  rt.retire();
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

// Whoever is to execute a block whose variables all get comes back at once, the others when it has ended the
// block.
SLALOM_EXPORT void* GOMP_single_copy_start() {
  const auto real = SLALOM_OPENMP(GOMP_single_copy_start);
  if (!runtime().controls()) return real();
  const uint64_t pc = SLALOM_PLACE();
  begin_loop(pc, 0);
  arrive_at_barrier(pc);
  void* copies = nullptr;
  {
    const WaitsFor barrier(openmp_barrier());
    copies = real();
  }
  if (copies != nullptr) leave_barrier(pc);
  return copies;
}
SLALOM_EXPORT void GOMP_ordered_start() {
  const auto real = SLALOM_OPENMP(GOMP_ordered_start);
  if (!runtime().controls()) return real();
  const uint64_t pc = SLALOM_PLACE();
  {
    const WaitsFor turn(ordered_part());
    real();
  }
  openmp_step(OpKind::Acquire, ordered_part(), pc);
  runtime().tell(OpKind::CpuUse, turn(ordered_in(team().loop)));
  openmp_acquire(ordered_part());
  runtime().retire();
}
SLALOM_BEFORE(GOMP_ordered_end, end_ordered)

SLALOM_BEFORE(GOMP_single_start, begin_loop)
SLALOM_BEFORE(GOMP_sections_start, begin_loop)
SLALOM_BEFORE(GOMP_sections2_start, begin_loop)
SLALOM_BEFORE(GOMP_sections_next, take_next)
SLALOM_BEFORE(GOMP_cancel, touch_cancellation)
SLALOM_BEFORE(GOMP_cancellation_point, touch_cancellation)

// Where it is not known how many counters there are, more of them than that are passed on: nobody looks at
// the rest.
#define WAITING_LOOP(kind, Number)                                                                      \
  SLALOM_EXPORT void GOMP_doacross_##kind##post(Number* counters) {                                     \
    if (!runtime().controls()) return SLALOM_OPENMP(GOMP_doacross_##kind##post)(counters);              \
    uint64_t iteration = team().loop;                                                                   \
    for (uint32_t i = 0; i < team().counters; ++i)                                                      \
      iteration = combine(iteration, static_cast<uint64_t>(counters[i]));                               \
    reach(iteration, SLALOM_PLACE());                                                                   \
  }                                                                                                     \
  SLALOM_EXPORT void GOMP_doacross_##kind##wait(Number first, ...) {                                    \
    const bool ours = runtime().controls();                                                             \
    const uint32_t count = ours ? team().counters : kMostCounters;                                      \
    Number all[kMostCounters] = {first};                                                                \
    va_list others;                                                                                     \
    va_start(others, first);                                                                            \
    for (uint32_t i = 1; i < count; ++i) all[i] = va_arg(others, Number);                               \
    va_end(others);                                                                                     \
    if (!ours)                                                                                          \
      return SLALOM_OPENMP(GOMP_doacross_##kind##wait)(first, all[1], all[2], all[3], all[4], all[5],   \
                                                       all[6], all[7]);                                 \
    uint64_t iteration = team().loop;                                                                   \
    for (uint32_t i = 0; i < count; ++i) iteration = combine(iteration, static_cast<uint64_t>(all[i])); \
    wait_for_iteration(iteration, SLALOM_PLACE());                                                      \
  }
WAITING_LOOP(, long)
WAITING_LOOP(ull_, unsigned long long)

// Loops, of both kinds of numbers. Where every thread knows its part by itself (static), nothing is shared
// out.
#define LOOP_OF(kind)                                     \
  SLALOM_BEFORE(GOMP_loop_##kind##_start, begin_loop)     \
  SLALOM_BEFORE(GOMP_loop_##kind##_next, take_next)       \
  SLALOM_BEFORE(GOMP_loop_ull_##kind##_start, begin_loop) \
  SLALOM_BEFORE(GOMP_loop_ull_##kind##_next, take_next)
#define ORDERED_LOOP_OF(kind)                                \
  SLALOM_BEFORE(GOMP_loop_##kind##_start, begin_loop)        \
  SLALOM_BEFORE(GOMP_loop_##kind##_next, take_next_in_order) \
  SLALOM_BEFORE(GOMP_loop_ull_##kind##_start, begin_loop)    \
  SLALOM_BEFORE(GOMP_loop_ull_##kind##_next, take_next_in_order)
#define LOOP_START(kind)                             \
  SLALOM_BEFORE(GOMP_loop_##kind##start, begin_loop) \
  SLALOM_BEFORE(GOMP_loop_ull_##kind##start, begin_loop)
#define WAITING_START(kind)                                  \
  SLALOM_BEFORE(GOMP_loop_##kind##start, begin_waiting_loop) \
  SLALOM_BEFORE(GOMP_loop_ull_##kind##start, begin_waiting_loop)
LOOP_OF(dynamic)
LOOP_OF(guided)
LOOP_OF(runtime)
LOOP_OF(nonmonotonic_dynamic)
LOOP_OF(nonmonotonic_guided)
LOOP_OF(nonmonotonic_runtime)
LOOP_OF(maybe_nonmonotonic_runtime)
ORDERED_LOOP_OF(ordered_static)
ORDERED_LOOP_OF(ordered_dynamic)
ORDERED_LOOP_OF(ordered_guided)
ORDERED_LOOP_OF(ordered_runtime)
LOOP_START()
LOOP_START(ordered_)
WAITING_START(doacross_)
WAITING_START(doacross_static_)
WAITING_START(doacross_dynamic_)
WAITING_START(doacross_guided_)
WAITING_START(doacross_runtime_)
