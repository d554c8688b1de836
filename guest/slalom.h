// Hypercalls: the interface between a program inside the virtual machine and slalom.
//
// Include this in your own test programs. A hypercall is a NOP that no compiler generates, so the program
// also runs elsewhere; slalom_present() tells whether slalom runs it. Hypercalls work in any mode and ring.
// Buffers must be in memory: touch them first (slalom_touch), since slalom accesses them without page faults.
#ifndef SLALOM_H
#define SLALOM_H

// Numbers of the hypercalls. The accumulator holds the number, and then the answer.
enum {
  SLALOM_PRESENT = 0x51a00,  // () -> SLALOM_VERSION
  SLALOM_FLOWS = 0x51a01,    // (n): n flows will call SLALOM_READY
  // (flow) -> 0: start; 1: call it again. The test begins when all flows have called it.
  SLALOM_READY = 0x51a02,
  SLALOM_PROGRAM = 0x51a03,  // (flow, buffer, room) -> bytes of the flow's program, copied to the buffer
  // (flow, buffer, size): the flow has ended with these results -> 1: call it again; 0: exit
  SLALOM_DONE = 0x51a04,
  SLALOM_CHECKED = 0x51a05,  // (status): the check after the test has ended; 0: success
  SLALOM_CHOOSE = 0x51a06,   // (n) -> a value below n that the search chooses
  SLALOM_NOTE = 0x51a07,     // (text, size): a note for the report
  SLALOM_FAIL = 0x51a08,    // (text, size, part): the test has failed for this reason; part: see guest/test.c
  SLALOM_INPUT = 0x51a09,   // (number, buffer, room) -> bytes of this input, copied to the buffer; -1: none
  SLALOM_OUTPUT = 0x51a0a,  // (number, buffer, size): gives a buffer to slalom
};
#define SLALOM_VERSION 1

// Numbers of inputs and outputs.
enum {
  SLALOM_PLAN = 0,     // the agent's plan
  SLALOM_THREADS = 1,  // the kernel's threads and their CPUs: lines of "name cpu how"
  SLALOM_PART = 2,     // no buffer: the part of the plan that the agent executes
  SLALOM_ENDED = 3,    // no buffer: the part whose flow has ended
  // (SLALOM_CALLING, list, call): the prepared list makes this call, counted from 0
  SLALOM_CALLING = 4,
  // Plus the number of the list: prepared calls for all flows (0) or for flow i (1 + i). Input: the list.
  // Output: its results.
  SLALOM_PREPARED = 16,
};

static inline long slalom_call(long number, long a, long b, long c) {
  // nopl 0x6c616c73(%rax,%rax,1)
  __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n.long 0x6c616c73"
                   : "+a"(number)
                   : "D"(a), "S"(b), "d"(c)
                   : "memory");
  return number;
}

static inline int slalom_present(void) {
  return slalom_call(SLALOM_PRESENT, 0, 0, 0) == SLALOM_VERSION;
}

// Makes a buffer's pages present and writable.
static inline void slalom_touch(void* buffer, unsigned long size) {
  volatile char* bytes = (volatile char*)buffer;
  for (unsigned long i = 0; i < size; i += 4096) bytes[i] = bytes[i];
  if (size > 0) bytes[size - 1] = bytes[size - 1];
}

// Pins the calling thread to a CPU.
static inline void slalom_pin(long cpu) {
  const unsigned long mask = 1ul << cpu;
  long result = 203;  // sched_setaffinity
  __asm__ volatile("syscall" : "+a"(result) : "D"(0), "S"(sizeof mask), "d"(&mask) : "rcx", "r11", "memory");
  (void)result;
}

// Call slalom_begin() before the tested operations, and slalom_end() or slalom_done() after them. Flows are
// numbered from 0. slalom_begin() moves the calling thread to the CPU of its flow. Flows of one process are
// threads of its program, each with a number of its own.
static inline void slalom_begin(long flow) {
  if (slalom_present()) slalom_pin(flow);
  while (slalom_call(SLALOM_READY, flow, 0, 0) == 1) {
  }
}
// `results` may be any bytes. slalom does not check the results of programs yet: a program must report its
// own failures with slalom_fail().
static inline void slalom_done(long flow, const void* results, unsigned long size) {
  while (slalom_call(SLALOM_DONE, flow, (long)results, (long)size) == 1) {
  }
}
static inline void slalom_end(long flow) {
  slalom_done(flow, 0, 0);
}

static inline unsigned slalom_choose(unsigned n) {
  const long value = slalom_call(SLALOM_CHOOSE, n, 0, 0);
  return value >= 0 && value < (long)n ? (unsigned)value : 0;
}
static inline void slalom_say(int number, const char* text) {
  unsigned long size = 0;
  while (text[size] != 0) ++size;
  slalom_call(number, (long)text, (long)size, 0);
}
static inline void slalom_note(const char* text) {
  slalom_say(SLALOM_NOTE, text);
}
static inline void slalom_fail(const char* text) {
  slalom_say(SLALOM_FAIL, text);
}

#endif
