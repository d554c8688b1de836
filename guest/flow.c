// A flow of a kernel test: gets a list of system calls from slalom, executes them, and returns their results.
//
// The list is one image that is processed in place (src/inputs/image.h has its layout): steps, room for
// results, and the data that pointers refer to. Between the first call and the last, this program only loads
// arguments, so that the search explores the kernel and not this program. slalom has checked the image.
//
// A flow has up to three lists: its own, one that it executes before it is ready, and one that is executed
// once for all flows. An argument names the list whose results or data it uses.
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"
#include "slalom.h"

struct Operand {
  uint8_t kind;
  uint8_t size;  // for a load, in bytes
  uint8_t is_signed;
  uint8_t list;
  int32_t addend;
  uint64_t value;
};
struct Step {
  uint8_t kind;
  uint8_t list;     // for others, the list whose data they use
  uint16_t size;    // for others, in bytes
  uint32_t number;  // of the call; for others, the offset in the data
  struct Operand operands[6];
};
struct Image {
  uint32_t magic, steps, calls, results, data, size, objects, object_table;
  uint32_t prepared[4];  // calls and bytes of data of the other two lists
  struct Step step[];
};
enum { CONSTANT, RESULT, POINTER, LOAD };
enum { CALL, STORE, CHOOSE, WRITE, READ };
enum { OWN, OF_FLOW, OF_ALL, LISTS };
typedef struct Image* Lists[LISTS];

#define ROOM (512 * 1024)
static uint8_t own_lists[MAX_FLOWS][ROOM] __attribute__((aligned(4096)));
static uint8_t prepared_lists[MAX_FLOWS][ROOM] __attribute__((aligned(4096)));
static uint8_t* list_of_all;  // NULL if nothing is prepared for all flows

static uint64_t load(const uint8_t* from, unsigned size, int is_signed) {
  uint64_t value = 0;
  memcpy(&value, from, size);
  const unsigned unused = 64 - 8 * size;
  return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static uint64_t value_of(const Lists lists, const struct Operand* operand) {
  const struct Image* image = lists[operand->list];
  const uint8_t* start = (const uint8_t*)image;
  uint64_t value = operand->value;
  switch (operand->kind) {
    case RESULT:
      value = load(start + image->results + 8 * value, 8, 0);
      break;
    case POINTER:
      value += (uint64_t)(start + image->data);
      break;
    case LOAD:
      value = load(start + image->data + value, operand->size, operand->is_signed);
      break;
    default:
      break;
  }
  return value + (uint64_t)(int64_t)operand->addend;
}

static inline long make_call(long number, const uint64_t* a) {
  register uint64_t a3 __asm__("r10") = a[3];
  register uint64_t a4 __asm__("r8") = a[4];
  register uint64_t a5 __asm__("r9") = a[5];
  long result = number;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(a3), "r"(a4), "r"(a5)
                   : "rcx", "r11", "memory");
  return result;
}

// A child process that a call has created is no flow. It ends at once.
static int made_child(uint32_t number, long result) {
  return result == 0 &&
         (number == SYS_fork || number == SYS_vfork || number == SYS_clone || number == SYS_clone3);
}

// Executes the first list. `prepares`: the number of this list if it is executed before the test begins, else
// -1.
static inline __attribute__((always_inline)) void run_list(const Lists lists, long prepares) {
  struct Image* image = lists[OWN];
  uint8_t* start = (uint8_t*)image;
  int64_t* result = (int64_t*)(start + image->results);
  for (uint32_t i = 0; i < image->steps; ++i) {
    const struct Step* step = &image->step[i];
    uint64_t a[6];
    if (step->kind != CALL) {
      uint8_t* place = (uint8_t*)lists[step->list] + lists[step->list]->data + step->number;
      a[0] = value_of(lists, &step->operands[0]);
      if (step->kind == CHOOSE) a[0] = slalom_call(SLALOM_CHOOSE, a[0], 0, 0);
      if (step->kind <= CHOOSE) {
        memcpy(place, a, step->size);
        continue;
      }
      uint8_t* address = (uint8_t*)(a[0] + value_of(lists, &step->operands[1]));
      if (step->kind == WRITE)
        memcpy(address, place, step->size);
      else
        memcpy(place, address, step->size);
      continue;
    }
    for (int k = 0; k < 6; ++k) a[k] = value_of(lists, &step->operands[k]);
    if (prepares >= 0)
      slalom_call(SLALOM_OUTPUT, SLALOM_CALLING, prepares, result - (int64_t*)(start + image->results));
    const long value = make_call(step->number, a);
    if (made_child(step->number, value)) {
      const uint64_t none[6] = {0};
      for (;;) make_call(SYS_exit, none);
    }
    *result++ = value;
  }
}

static void run_image(const Lists lists) {
  run_list(lists, -1);
}

// Executes every path of the interpreter once, so that no page of it is missing later. Locking all memory
// would have the same effect, but unlocking it takes longer than most tests.
static void warm_up(uint8_t* bytes) {
  struct Image* image = (struct Image*)bytes;
  memset(bytes, 0, ROOM);
  image->steps = 2;
  image->calls = 1;
  image->results = 4096;
  image->data = 8192;
  image->step[0].kind = STORE;
  image->step[0].size = 8;
  image->step[0].operands[0].kind = POINTER;
  image->step[1].number = SYS_getppid;
  for (int k = 0; k < 4; ++k)
    image->step[1].operands[k] = (struct Operand){.kind = (uint8_t)k, .size = 4, .is_signed = 1};
  run_image((Lists){image, image, image});
  memset(bytes, 0, ROOM);
}

// Makes pages present and writable, also while other flows change them.
static void touch_shared(uint8_t* bytes, uint32_t size) {
  for (uint32_t i = 0; i < size; i += 4096) __atomic_fetch_or(bytes + i, 0, __ATOMIC_RELAXED);
  if (size > 0) __atomic_fetch_or(bytes + size - 1, 0, __ATOMIC_RELAXED);
}

// Executes the prepared list with this number, if there is one, and reports its results.
static int run_prepared(uint8_t* bytes, long number) {
  slalom_touch(bytes, ROOM);
  struct Image* image = (struct Image*)bytes;
  if (slalom_call(SLALOM_INPUT, SLALOM_PREPARED + number, (long)bytes, ROOM) <= 0) return 0;
  run_list((Lists){image, image, (struct Image*)list_of_all}, number);
  slalom_call(SLALOM_OUTPUT, SLALOM_PREPARED + number, (long)(bytes + image->results),
              image->size - image->results);
  return 1;
}

int prepare_all(int shares_memory) {
  uint8_t* bytes = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
                        (shares_memory ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED || !run_prepared(bytes, 0)) return 0;
  list_of_all = bytes;
  return 1;
}

void execute_flow(long flow, int is_prepared) {
  uint8_t* own = own_lists[flow];
  struct Image* image = (struct Image*)own;
  warm_up(own);
  slalom_touch(own, ROOM);
  if (is_prepared) run_prepared(prepared_lists[flow], 1 + flow);
  if (list_of_all != NULL) touch_shared(list_of_all, ((struct Image*)list_of_all)->size);
  while (slalom_call(SLALOM_READY, flow, 0, 0) == 1) make_call(SYS_sched_yield, (uint64_t[6]){0});
  if (slalom_call(SLALOM_PROGRAM, flow, (long)own, ROOM) > 0)
    run_image((Lists){image, (struct Image*)prepared_lists[flow], (struct Image*)list_of_all});
  while (slalom_call(SLALOM_DONE, flow, (long)(own + image->results), image->size - image->results) == 1) {
  }
}

int run_flow(long flow) {
  execute_flow(flow, 0);
  _exit(0);
}
