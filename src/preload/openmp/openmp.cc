// Teams: parallel regions and barriers.
#include "preload/openmp/openmp.h"

#include <dlfcn.h>

#include <utility>

#include "preload/openmp/inline_calls.h"
#include "preload/runtime/raw.h"

extern "C" {
int omp_get_thread_num();
int omp_get_num_threads();
}

namespace slalom::preload {
namespace {

constinit thread_local OpenMpState here = {};
// The thread's count of operations when it last came back from a wait in libgomp.
constinit thread_local uint64_t waited_until = 0;
constinit bool has_tasks = false;

uint64_t barrier_of(const Team& team, uint32_t number) {
  return openmp_object(OpenMpObject::Barrier, combine(team.id, team.barriers, number));
}
uint64_t start_of(uint64_t team) {
  return openmp_object(OpenMpObject::Team, team);
}
uint64_t end_of(uint64_t team, uint32_t number) {
  return openmp_object(OpenMpObject::Team, combine(team, number));
}

}  // namespace

void arrive_at_barrier(uint64_t pc) {
  runtime().set_place(pc);
  if (here.team.size > 1) openmp_release(barrier_of(here.team, here.team.number));
  look_for_task();
}

void leave_barrier(uint64_t pc) {
  Team& team = here.team;
  if (team.id == 0) return;
  if (team.size > 1) openmp_step(OpKind::Acquire, barrier_of(team, 0), pc);
  for (uint32_t i = 0; i < team.size; ++i)
    if (i != team.number) openmp_acquire(barrier_of(team, i));
  openmp_acquire(tasks_until(team.id, team.barriers));
  if (team.size > 1) runtime().retire();
  ++team.barriers;
}

uint64_t openmp_barrier() {
  return barrier_of(here.team, 0);
}

namespace {

// Calls a function of libgomp that ends with a barrier.
template <typename Function>
auto at_barrier(Function real, uint64_t pc) {
  arrive_at_barrier(pc);
  struct Leave {
    uint64_t pc;
    ~Leave() { leave_barrier(pc); }
  } const leave{pc};
  const WaitsFor barrier(openmp_barrier());
  return real();
}

// The data that the threads of a team get in place of the user's function and its data.
struct Region {
  void* first;  // the first word of the data, which libgomp reads if there are reductions
  void (*function)(void*);
  void* data;
  uint64_t team;
  uint64_t pc;
  uint32_t size = 1, barriers = 0;
};

void run_region(void* argument) {
  auto& region = *static_cast<Region*>(argument);
  const auto number = static_cast<uint32_t>(SLALOM_OPENMP(omp_get_thread_num)());
  const auto size = static_cast<uint32_t>(SLALOM_OPENMP(omp_get_num_threads)());
  here = {.team = {.id = region.team, .loop = combine(region.team, 0), .number = number, .size = size},
          .task = {.id = combine(region.team, number, 2)}};
  const uint64_t entry =
      std::exchange(runtime().me().team_entry, 0);  // the user's own threads have entries of their own
  if (size > 1) openmp_step(OpKind::Acquire, start_of(region.team), region.pc);
  if (number != 0) openmp_acquire(start_of(region.team));
  if (size > 1) runtime().retire();
  region.function(region.data);
  if (number == 0) region.size = size;
  if (number == 0) region.barriers = here.team.barriers;
  if (number != 0) openmp_release(end_of(region.team, number));
  if (number != 0) inline_wait_object = start_of(region.team);
  look_for_task();
  runtime().me().team_entry = entry;
}

// `start` makes libgomp execute its first argument with its second one in a team.
template <typename Start>
auto in_team(void (*function)(void*), void* data, bool reduces, uint64_t pc, Start start) {
  Runtime& rt = runtime();
  Task& task = here.task;
  if (task.id == 0) task.id = rt.slot(rt.self()).id;
  Region region{reduces ? *static_cast<void**>(data) : nullptr, function, data,
                combine(task.id, ++task.teams), pc};
  openmp_release(start_of(region.team));
  const uint64_t entry = rt.me().team_entry;
  rt.me().team_entry = reinterpret_cast<uint64_t>(function);
  struct End {
    const Region& region;
    uint64_t entry;
    OpenMpState before;
    ~End() {
      runtime().me().team_entry = entry;
      here = before;
      if (region.size <= 1) return;
      openmp_step(OpKind::Acquire, end_of(region.team, 1), region.pc);
      for (uint32_t i = 1; i < region.size; ++i) openmp_acquire(end_of(region.team, i));
      openmp_acquire(tasks_until(region.team, region.barriers));
      runtime().retire();
    }
  } const end{region, entry, here};
  const WaitsFor team(start_of(region.team));
  return start(run_region, static_cast<void*>(&region));
}

}  // namespace

OpenMpState& openmp_state() {
  return here;
}

[[gnu::noinline]] void openmp_arrive(OpKind op, uint64_t object, uint64_t pc, Need need, const void* at) {
  constexpr size_t kStackGap = 4096;
  const void* room = __builtin_alloca(kStackGap);
  asm volatile("" ::"r"(room));
  runtime().arrive(op, object, pc, need, at);
}

void openmp_waited() {
  Runtime& rt = runtime();
  look_for_task();
  waited_until = has_tasks ? 0 : rt.slot(rt.self()).ops + 1;
}

void look_for_task() {
  // Reported as a failure; a task that it finds is reported when it begins.
  if (has_tasks)
    runtime().tell(OpKind::TryLock, openmp_object(OpenMpObject::Tasks, here.team.id), 1, 0, kNoAgent,
                   "looks for one");
}

bool openmp_has_tasks() {
  return has_tasks;
}
void openmp_adds_task() {
  has_tasks = true;
}

void openmp_step(OpKind op, uint64_t object, uint64_t pc) {
  Runtime& rt = runtime();
  if (rt.slot(rt.self()).ops == waited_until)
    rt.set_place(pc);
  else
    openmp_arrive(op, object, pc);
}

void openmp_claim(uint64_t object, uint64_t pc) {
  openmp_arrive(OpKind::Claim, object, pc);
  runtime().tell(OpKind::Claim, object);
  runtime().retire();
}

WaitsFor::WaitsFor(uint64_t object) : before_(inline_wait_object) {
  inline_wait_object = object;
}
WaitsFor::~WaitsFor() {
  inline_wait_object = before_;
}

void* find_openmp(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name); found != nullptr) return found;
  void* library = dlopen("libgomp.so.1", RTLD_NOLOAD | RTLD_LAZY);
  return library == nullptr ? nullptr : dlsym(library, name);
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

using Function = void(void*);

// All other variants have arguments of their own after the first three.
#define PARALLEL(name, reduces, result, parameters, ...)                                       \
  SLALOM_EXPORT result GOMP_parallel##name(Function* function, void* data, unsigned threads,   \
                                           parameters unsigned flags) {                        \
    const auto real = SLALOM_OPENMP(GOMP_parallel##name);                                      \
    if (!runtime().controls()) return real(function, data, threads, ##__VA_ARGS__, flags);     \
    return in_team(function, data, reduces, SLALOM_PLACE(), [&](Function* run, void* region) { \
      return real(run, region, threads, ##__VA_ARGS__, flags);                                 \
    });                                                                                        \
  }
#define NONE
#define COUNT unsigned count,
#define RANGE long begin, long end, long by,
#define CHUNKS long begin, long end, long by, long chunk,
PARALLEL(, false, void, NONE)
PARALLEL(_reductions, true, unsigned, NONE)
PARALLEL(_sections, false, void, COUNT, count)
PARALLEL(_loop_static, false, void, CHUNKS, begin, end, by, chunk)
PARALLEL(_loop_dynamic, false, void, CHUNKS, begin, end, by, chunk)
PARALLEL(_loop_guided, false, void, CHUNKS, begin, end, by, chunk)
PARALLEL(_loop_nonmonotonic_dynamic, false, void, CHUNKS, begin, end, by, chunk)
PARALLEL(_loop_nonmonotonic_guided, false, void, CHUNKS, begin, end, by, chunk)
PARALLEL(_loop_runtime, false, void, RANGE, begin, end, by)
PARALLEL(_loop_nonmonotonic_runtime, false, void, RANGE, begin, end, by)
PARALLEL(_loop_maybe_nonmonotonic_runtime, false, void, RANGE, begin, end, by)

#define BARRIER(name, result)                                \
  SLALOM_EXPORT result name() {                              \
    if (!runtime().controls()) return SLALOM_OPENMP(name)(); \
    return at_barrier(SLALOM_OPENMP(name), SLALOM_PLACE());  \
  }
BARRIER(GOMP_barrier, void)
BARRIER(GOMP_barrier_cancel, bool)
BARRIER(GOMP_loop_end, void)
BARRIER(GOMP_loop_end_cancel, bool)
BARRIER(GOMP_sections_end, void)
BARRIER(GOMP_sections_end_cancel, bool)

SLALOM_EXPORT void GOMP_single_copy_end(void* copies) {
  const auto real = SLALOM_OPENMP(GOMP_single_copy_end);
  if (!runtime().controls()) return real(copies);
  at_barrier([&] { real(copies); }, SLALOM_PLACE());
}
