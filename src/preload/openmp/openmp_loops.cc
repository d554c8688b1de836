// Work that the threads of a team share out: loops, sections and single blocks. Also the ordered parts of
// loops.
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

// The ordered parts of a loop, by number: each comes after the one before. The current numbers are kept for a
// limited number of loops.
struct OrderedParts {
  uint64_t loop;
  uint64_t done;
  uint64_t turns;  // number of times that a thread passed its turn to the next
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
// libgomp lets the next thread go on when this thread takes the next piece of the loop, not at the end of the
// ordered part. To OpenMP that orders nothing; it only means that the next thread cannot come earlier.
constexpr uint64_t kNotYet = 2;  // value in the event, for CpuUse
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

// Loops whose iterations wait (depend(sink)) until others have reported their progress (depend(source)).
// libgomp would poll for that.
void begin_waiting_loop(uint64_t pc, uint64_t counters) {
  begin_loop(pc, counters);
  if (counters > kMostCounters) runtime().note_uncontrolled(Uncontrolled::OpenMp);
  team().counters = static_cast<uint32_t>(counters < kMostCounters ? counters : kMostCounters);
}

// Iterations that have reported, as hashes of their loop and counters. Never removed.
class Reached {
 public:
  bool has(uint64_t iteration) const { return slots_[find(iteration)] == iteration; }
  bool add(uint64_t iteration) {  // returns false if there are too many
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

// The thread that executes a single block with copyprivate returns at once, the others after it has ended the
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

// If the number of counters is unknown, kMostCounters are passed on; libgomp ignores the extra ones.
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

// Loops with both kinds of counters. In a static loop each thread knows its part, so nothing is shared out.
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
