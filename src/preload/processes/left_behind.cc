// Objects that executions leave behind in the kernel and that the next execution would meet: System V
// semaphores, queues and memory, and named message queues. Only objects that an execution has made itself.
#include <mqueue.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>

#include "preload/runtime/raw.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kMostLeft = 256;

// In memory shared by the process that forks executions and all executions.
struct LeftBehind {
  uint32_t count;
  struct {
    char kind;
    int id;
    char name[64];
  } things[kMostLeft];
};
constinit LeftBehind* left = nullptr;

}  // namespace

void prepare_left_behind() {
  void* memory = mmap(nullptr, sizeof(LeftBehind), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) left = static_cast<LeftBehind*>(memory);
}

bool is_left_behind(uint64_t address) {
  return address == reinterpret_cast<uint64_t>(left);
}

void note_left_behind(char kind, int id) {
  if (left != nullptr && left->count < kMostLeft) left->things[left->count++] = {kind, id, {}};
}

void note_left_behind(const char* queue) {
  if (left == nullptr || left->count == kMostLeft || strlen(queue) >= sizeof left->things[0].name) return;
  auto& thing = left->things[left->count++];
  thing.kind = 'n';
  memcpy(thing.name, queue, strlen(queue) + 1);
}

void remove_left_behind() {
  if (left == nullptr) return;
  for (uint32_t i = 0; i < left->count && i < kMostLeft; ++i) {
    const auto& thing = left->things[i];
    if (thing.kind == 's') raw_syscall(SYS_semctl, thing.id, 0, IPC_RMID);
    if (thing.kind == 'q') raw_syscall(SYS_msgctl, thing.id, IPC_RMID);
    if (thing.kind == 'm') raw_syscall(SYS_shmctl, thing.id, IPC_RMID);
    if (thing.kind == 'n') raw_syscall(SYS_mq_unlink, reinterpret_cast<long>(thing.name + 1));
  }
  left->count = 0;
}

}  // namespace slalom::preload
