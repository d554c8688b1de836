// Hypercalls: how a program inside the virtual machine talks to slalom.
//
// Include this in a test program of your own. A call is a NOP that no compiler makes, so the program also
// runs elsewhere: slalom_present() says where it is. It works in any mode and ring. Buffers must be in
// memory: touch them before (slalom_touch), since slalom reads and writes them without page faults.
#ifndef SLALOM_H
#define SLALOM_H

// What the number in the accumulator asks for; the answer comes back there.
enum {
  SLALOM_PRESENT = 0x51a00,  // () -> SLALOM_VERSION
  SLALOM_FLOWS = 0x51a01,    // (n): so many flows will say SLALOM_READY
  SLALOM_READY = 0x51a02,    // (flow) -> 0: go; 1: say it again. When all have said it, the test begins
  SLALOM_PROGRAM = 0x51a03,  // (flow, buffer, room) -> bytes of the flow's program, copied there
  // (flow, buffer, size): the flow has ended, with these results -> 1: say it again; 0: go on to your end
  SLALOM_DONE = 0x51a04,
  SLALOM_CHECKED = 0x51a05,  // (status): what was to be looked at after the test has been; 0 is good
  SLALOM_CHOOSE = 0x51a06,   // (n) -> a value below n, which the search explores
  SLALOM_NOTE = 0x51a07,     // (text, size): for the report
  SLALOM_FAIL = 0x51a08,     // (text, size, of): the test has failed, for this reason; of: see guest/test.c
  SLALOM_INPUT = 0x51a09,    // (number, buffer, room) -> bytes of that input, copied there; -1: there is none
  SLALOM_OUTPUT = 0x51a0a,   // (number, buffer, size): takes a buffer out
};
#define SLALOM_VERSION 1

// Numbers of inputs and outputs.
enum {
  SLALOM_PLAN = 0,     // what the agent has to do
  SLALOM_THREADS = 1,  // the kernel's threads and where they run: lines of "name cpu how"
  SLALOM_PART = 2,     // instead of a buffer: which part of the plan the agent is at, and
  SLALOM_ENDED = 3,    // which part's flow has ended
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

// Makes a buffer's pages present, and writable.
static inline void slalom_touch(void* buffer, unsigned long size) {
  volatile char* bytes = (volatile char*)buffer;
  for (unsigned long i = 0; i < size; i += 4096) bytes[i] = bytes[i];
  if (size > 0) bytes[size - 1] = bytes[size - 1];
}

// The flow is about to do what is tested, and has done it. Flows are numbered from 0, and each is pinned to
// the CPU of its number.
static inline void slalom_begin(long flow) {
  while (slalom_call(SLALOM_READY, flow, 0, 0) == 1) {
  }
}
// With results, any bytes: so far nobody looks at those of programs. What is wrong the program itself must
// say, with slalom_fail.
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
