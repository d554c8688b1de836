// OpenMP's tasks: what comes before a task, what comes after its end, and which thread takes which task.
//
// libgomp calls the task's function with a copy of its data, in any thread. The runtime appends the task's
// Origin to that data. To know where it lies, each task function of a program has a thunk of its own in its
// place.
#include <string.h>

#include <array>
#include <utility>

#include "preload/openmp/openmp.h"
#include "preload/runtime/raw.h"

namespace slalom::preload {
namespace {

using Function = void(void*);
using Copy = void(void*, void*);

// Lies behind the data of a task. The addresses that the task depends on follow: those that it writes, then
// those that it only reads.
struct Origin {
  uint64_t id, parent, group, team;
  uint32_t barrier;  // the barrier by which the task ends
  uint32_t writes, reads;
};
struct Dependences {
  void** addresses = nullptr;
  uint32_t writes = 0, reads = 0;
  uint32_t count() const { return writes + reads; }
};

struct Kind {
  Function* function;
  Copy* copy;
  uint64_t data_size;
};
constexpr uint32_t kMostKinds = 256;
constinit Kind kinds[kMostKinds] = {};
constinit uint32_t kind_count = 0;
// The task that the running thread creates, for its Copy function.
constinit thread_local const Origin* creating = nullptr;
constinit thread_local const Dependences* creating_with = nullptr;

uint64_t task_object(uint64_t task) {
  return openmp_object(OpenMpObject::Tasks, task);
}
uint64_t children_of(uint64_t task) {
  return openmp_object(OpenMpObject::Tasks, combine(task, 3));
}
// The objects that siblings which use an address wait for: the last task that writes it, and those that read
// it since.
uint64_t dependence(uint64_t parent, const void* address, bool reads) {
  return openmp_object(OpenMpObject::Tasks, combine(parent, object_id(address), reads));
}

size_t origin_at(uint64_t data_size) {
  return (data_size + 7) & ~size_t{7};
}

void put_origin(void* data, uint64_t data_size) {
  char* at = static_cast<char*>(data) + origin_at(data_size);
  memcpy(at, creating, sizeof(Origin));
  if (creating_with->count() > 0)
    memcpy(at + sizeof(Origin), creating_with->addresses, creating_with->count() * sizeof(void*));
}

// When the thread had its turn, it had taken the task from the team's, and all tasks before it had ended.
void begin_task(const Origin& origin, void* const* addresses, uint64_t pc) {
  openmp_acquire(task_object(origin.id));
  for (uint32_t i = 0; i < origin.writes + origin.reads; ++i) {
    openmp_acquire(dependence(origin.parent, addresses[i], false));
    if (i < origin.writes) openmp_acquire(dependence(origin.parent, addresses[i], true));
  }
  runtime().tell(OpKind::Claim, openmp_object(OpenMpObject::Tasks, origin.team));
  openmp_step(OpKind::GoOn, 0, pc);
  runtime().tell(OpKind::GoOn, 0);
  runtime().retire();
}

void end_task(const Origin& origin, void* const* addresses) {
  for (uint32_t i = 0; i < origin.writes + origin.reads; ++i)
    openmp_release(dependence(origin.parent, addresses[i], i >= origin.writes));
  openmp_release(children_of(origin.parent));
  if (origin.group != 0) openmp_release(task_object(origin.group));
  openmp_release(tasks_until(origin.team, origin.barrier));
  look_for_task();
}

void run_task(const Kind& kind, void* data) {
  const auto& origin = *reinterpret_cast<const Origin*>(static_cast<char*>(data) + origin_at(kind.data_size));
  auto* const* addresses = reinterpret_cast<void* const*>(&origin + 1);
  OpenMpState& here = openmp_state();
  const OpenMpState before = here;
  here.task = {.id = origin.id, .depth = origin.group != 0 ? 1u : 0u, .group = {origin.group}};
  here.team.id = origin.team;
  here.team.barriers = origin.barrier;
  const WaitsFor nothing(0);
  // The data lies in libgomp's memory, where another task's data may have been before.
  if (runtime().sees_accesses())
    runtime().tell(OpKind::Alloc, object_id(data), 1, static_cast<int64_t>(kind.data_size));
  begin_task(origin, addresses, reinterpret_cast<uint64_t>(kind.function));
  kind.function(data);
  end_task(origin, addresses);
  here = before;
}

template <uint32_t I>
void run(void* data) {
  run_task(kinds[I], data);
}
template <uint32_t I>
void copy(void* to, void* from) {
  kinds[I].copy(to, from);
  put_origin(to, kinds[I].data_size);
}
struct Thunk {
  Function* run;
  Copy* copy;
};
template <uint32_t... I>
constexpr std::array<Thunk, sizeof...(I)> make_thunks(std::integer_sequence<uint32_t, I...>) {
  return {Thunk{run<I>, copy<I>}...};
}
constexpr auto kThunks = make_thunks(std::make_integer_sequence<uint32_t, kMostKinds>());

// nullptr if there are too many.
const Thunk* thunk_of(const Kind& kind) {
  for (uint32_t i = 0; i < kind_count; ++i)
    if (kinds[i].function == kind.function && kinds[i].copy == kind.copy &&
        kinds[i].data_size == kind.data_size)
      return &kThunks[i];
  if (kind_count == kMostKinds) return nullptr;
  kinds[kind_count] = kind;
  return &kThunks[kind_count++];
}

// Reads gcc's list of dependences. The list has two forms. Brief: the number of all and of the writing ones,
// then the addresses. Long: 0 and the numbers of all, of the writing, mutually exclusive and reading ones,
// then the addresses. Any further entries are objects that begin with the address and have their own kind;
// they count as writing.
Dependences dependences(void** list, void** room, size_t most) {
  if (list == nullptr) return {};
  const auto number = [&](int i) { return reinterpret_cast<uintptr_t>(list[i]); };
  const bool brief = number(0) != 0;
  const uint64_t all = brief ? number(0) : number(1);
  const uint64_t writes = brief ? number(1) : number(2) + number(3);
  const uint64_t reads = brief ? all - writes : number(4);
  void** from = list + (brief ? 2 : 5);
  if (all > most) return {};
  Dependences found{room, 0, static_cast<uint32_t>(reads)};
  for (uint64_t i = 0; i < writes; ++i) room[found.writes++] = from[i];
  for (uint64_t i = writes + reads; i < all; ++i) room[found.writes++] = *static_cast<void**>(from[i]);
  for (uint64_t i = writes; i < writes + reads; ++i) room[found.writes + i - writes] = from[i];
  return found;
}
constexpr size_t kMostDependences = 64;

uint64_t current_group(const Task& task) {
  if (task.depth == 0) return 0;
  return task.group[(task.depth < Task::kMostGroups ? task.depth : Task::kMostGroups) - 1];
}

void enter_group(Task& task) {
  const uint64_t group = combine(task.id, ++task.groups, 4);
  if (task.depth++ < Task::kMostGroups) task.group[task.depth - 1] = group;
}

// Reports that the tasks have ended that the thread waited for.
void acquire_after_wait(uint64_t object, uint64_t pc) {
  openmp_step(OpKind::Acquire, object, pc);
  openmp_acquire(object);
  runtime().retire();
}

void leave_group(Task& task, uint64_t pc) {
  const uint64_t group = current_group(task);
  if (task.depth > 0) --task.depth;
  if (group != 0) acquire_after_wait(task_object(group), pc);
}

// `create` makes libgomp create one or more tasks, from a function, its data, a function that copies them, a
// size, and an alignment.
template <typename Create>
void create_tasks(Kind kind, void* data, long alignment, void** depends, uint64_t pc, Create create) {
  Runtime& rt = runtime();
  OpenMpState& here = openmp_state();
  void* room[kMostDependences];
  const Dependences with = dependences(depends, room, kMostDependences);
  const Thunk* thunk = thunk_of(kind);
  if (here.task.id == 0) here.task.id = rt.slot(rt.self()).id;
  const Origin origin{combine(here.task.id, ++here.task.tasks, 5),
                      here.task.id,
                      current_group(here.task),
                      here.team.id,
                      here.team.barriers,
                      with.writes,
                      with.reads};
  openmp_adds_task();
  openmp_claim(openmp_object(OpenMpObject::Tasks, here.team.id), pc);
  openmp_release(task_object(origin.id));
  // A thread that looks for tasks next does what it finds.
  rt.tell(OpKind::Choose, openmp_object(OpenMpObject::Tasks, here.team.id));
  if (thunk == nullptr || (with.count() == 0 && depends != nullptr)) {
    rt.note_uncontrolled(Uncontrolled::OpenMp);
    return create(kind.function, data, kind.copy, static_cast<long>(kind.data_size), alignment);
  }
  const size_t size = origin_at(kind.data_size) + sizeof(Origin) + with.count() * sizeof(void*);
  const long aligned = alignment < 8 ? 8 : alignment;
  const auto* last = std::exchange(creating, &origin);
  const auto* last_with = std::exchange(creating_with, &with);
  if (kind.copy != nullptr) {
    create(thunk->run, data, thunk->copy, static_cast<long>(size), aligned);
  } else {
    auto* buffer = static_cast<char*>(__builtin_alloca(size + static_cast<size_t>(aligned)));
    buffer += -object_id(buffer) & static_cast<uint64_t>(aligned - 1);
    if (kind.data_size != 0) memcpy(buffer, data, kind.data_size);
    put_origin(buffer, kind.data_size);
    create(thunk->run, buffer, nullptr, static_cast<long>(size), aligned);
  }
  creating = last;
  creating_with = last_with;
  // Other threads may have taken the tasks before this thread goes on.
  openmp_step(OpKind::GoOn, 0, pc);
  rt.tell(OpKind::GoOn, 0);
  rt.retire();
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT void GOMP_task(Function* function, void* data, Copy* copy, long size, long alignment,
                             bool defers, unsigned flags, void** depends, int priority, void* detach) {
  constexpr unsigned kDepends = 1 << 3, kDetach = 1 << 13;
  const auto real = SLALOM_OPENMP(GOMP_task);
  if (!runtime().controls())
    return real(function, data, copy, size, alignment, defers, flags, depends, priority, detach);
  if ((flags & kDetach) != 0) runtime().note_uncontrolled(Uncontrolled::OpenMp);
  create_tasks({function, copy, static_cast<uint64_t>(size)}, data, alignment,
               (flags & kDepends) != 0 ? depends : nullptr, SLALOM_PLACE(),
               [&](Function* run, void* its_data, Copy* its_copy, long its_size, long its_alignment) {
                 real(run, its_data, its_copy, its_size, its_alignment, defers, flags, depends, priority,
                      detach);
               });
}

// A loop whose parts are tasks, in a group of their own unless the flags say otherwise.
#define TASK_LOOP(name, Number)                                                                          \
  SLALOM_EXPORT void name(Function* function, void* data, Copy* copy, long size, long alignment,         \
                          unsigned flags, unsigned long tasks, int priority, Number begin, Number end,   \
                          Number by) {                                                                   \
    constexpr unsigned kNoGroup = 1 << 11;                                                               \
    const auto real = SLALOM_OPENMP(name);                                                               \
    if (!runtime().controls())                                                                           \
      return real(function, data, copy, size, alignment, flags, tasks, priority, begin, end, by);        \
    const uint64_t pc = SLALOM_PLACE();                                                                  \
    Task& task = openmp_state().task;                                                                    \
    if ((flags & kNoGroup) == 0) enter_group(task);                                                      \
    create_tasks({function, copy, static_cast<uint64_t>(size)}, data, alignment, nullptr, pc,            \
                 [&](Function* run, void* its_data, Copy* its_copy, long its_size, long its_alignment) { \
                   real(run, its_data, its_copy, its_size, its_alignment, flags, tasks, priority, begin, \
                        end, by);                                                                        \
                 });                                                                                     \
    if ((flags & kNoGroup) == 0) leave_group(task, pc);                                                  \
  }
TASK_LOOP(GOMP_taskloop, long)
TASK_LOOP(GOMP_taskloop_ull, unsigned long long)

SLALOM_EXPORT void GOMP_taskwait() {
  const auto real = SLALOM_OPENMP(GOMP_taskwait);
  if (!runtime().controls()) return real();
  const uint64_t pc = SLALOM_PLACE(), children = children_of(openmp_state().task.id);
  {
    const WaitsFor tasks(children);
    real();
  }
  acquire_after_wait(children, pc);
}
SLALOM_EXPORT void GOMP_taskwait_depend(void** depends) {
  const auto real = SLALOM_OPENMP(GOMP_taskwait_depend);
  if (!runtime().controls()) return real(depends);
  const uint64_t pc = SLALOM_PLACE(), parent = openmp_state().task.id;
  real(depends);
  void* room[kMostDependences];
  const Dependences on = dependences(depends, room, kMostDependences);
  openmp_step(OpKind::Acquire, children_of(parent), pc);
  for (uint32_t i = 0; i < on.count(); ++i) {
    openmp_acquire(dependence(parent, on.addresses[i], false));
    if (i < on.writes) openmp_acquire(dependence(parent, on.addresses[i], true));
  }
  runtime().retire();
}
SLALOM_EXPORT void GOMP_taskgroup_start() {
  SLALOM_OPENMP(GOMP_taskgroup_start)();
  if (runtime().controls()) enter_group(openmp_state().task);
}
SLALOM_EXPORT void GOMP_taskgroup_end() {
  const auto real = SLALOM_OPENMP(GOMP_taskgroup_end);
  if (!runtime().controls()) return real();
  const uint64_t pc = SLALOM_PLACE();
  {
    const WaitsFor tasks(task_object(current_group(openmp_state().task)));
    real();
  }
  leave_group(openmp_state().task, pc);
}
SLALOM_EXPORT void GOMP_taskyield() {
  if (!runtime().controls()) return SLALOM_OPENMP(GOMP_taskyield)();
  openmp_arrive(OpKind::GoOn, 0, SLALOM_PLACE());
  runtime().tell(OpKind::GoOn, 0);
  runtime().retire();
  SLALOM_OPENMP(GOMP_taskyield)();
}
