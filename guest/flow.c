// A flow of a kernel test: gets a list of system calls from slalom, executes them, and returns their results.
//
// The list is one image that is processed in place (src/inputs/image.h has its layout): steps, room for
// results, and the data that pointers refer to. Between the first call and the last, this program only loads
// arguments, so that the search explores the kernel and not this program. slalom has checked the image.
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"
#include "slalom.h"

struct Operand {
  uint8_t kind;
  uint8_t size;  // for a load, in bytes
  uint16_t is_signed;
  int32_t addend;
  uint64_t value;
};
struct Step {
  uint16_t kind;
  uint16_t size;    // for a store, in bytes
  uint32_t number;  // of the call; for a store, the offset in the data
  struct Operand operands[6];
};
struct Image {
  uint32_t magic, steps, calls, results, data, size, objects, object_table;
  struct Step step[];
};
enum { CONSTANT, RESULT, POINTER, LOAD };
enum { CALL, STORE };

#define ROOM (512 * 1024)
static uint8_t image_bytes[ROOM] __attribute__((aligned(4096)));

static uint64_t load(const uint8_t* from, unsigned size, int is_signed) {
  uint64_t value = 0;
  memcpy(&value, from, size);
  const unsigned unused = 64 - 8 * size;
  return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static uint64_t value_of(const struct Image* image, const struct Operand* operand) {
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

static void run_image(struct Image* image) {
  uint8_t* start = (uint8_t*)image;
  int64_t* result = (int64_t*)(start + image->results);
  for (uint32_t i = 0; i < image->steps; ++i) {
    const struct Step* step = &image->step[i];
    uint64_t a[6];
    if (step->kind == STORE) {
      a[0] = value_of(image, &step->operands[0]);
      memcpy(start + image->data + step->number, a, step->size);
      continue;
    }
    for (int k = 0; k < 6; ++k) a[k] = value_of(image, &step->operands[k]);
    const long value = make_call(step->number, a);
    if (made_child(step->number, value)) {
      const uint64_t none[6] = {0};
      for (;;) make_call(SYS_exit, none);
    }
    *result++ = value;
  }
}

// Executes every path of the interpreter once, so that no page of it is missing later. Locking all memory
// would have the same effect, but unlocking it takes longer than most tests.
static void warm_up(void) {
  struct Image* image = (struct Image*)image_bytes;
  memset(image_bytes, 0, sizeof image_bytes);
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
  run_image(image);
  memset(image_bytes, 0, sizeof image_bytes);
}

int run_flow(long flow) {
  warm_up();
  slalom_touch(image_bytes, sizeof image_bytes);
  while (slalom_call(SLALOM_READY, flow, 0, 0) == 1) make_call(SYS_sched_yield, (uint64_t[6]){0});
  struct Image* image = (struct Image*)image_bytes;
  if (slalom_call(SLALOM_PROGRAM, flow, (long)image_bytes, sizeof image_bytes) > 0) run_image(image);
  while (slalom_call(SLALOM_DONE, flow, (long)(image_bytes + image->results), image->size - image->results) ==
         1) {
  }
  _exit(0);
}
