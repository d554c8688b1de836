// A little teaching kernel with the hardware of an old PC: threads that the timer preempts, a mutex, a
// keyboard driver with an interrupt handler and a waiting reader, a text screen, the clock. Built for 32-bit
// and for 64-bit mode.
//
// What it prints depends on no timing, so that it is the same on any machine.
#include "bare.h"

namespace {

// --- screen and serial line ---

unsigned cursor;

void put(char c) {
  volatile uint16_t* cells = reinterpret_cast<volatile uint16_t*>(0xb8000);
  if (c == '\n')
    cursor += 80 - cursor % 80;
  else
    cells[cursor++] = static_cast<uint16_t>(0x0700 | static_cast<uint8_t>(c));
  if (cursor >= 80 * 25) cursor = 0;
}

void say(const char* text) {
  for (const char* c = text; *c != 0; ++c) put(*c);
  print(text);
}

void say_number(unsigned value) {
  char text[11];
  unsigned at = sizeof text - 1;
  text[at] = 0;
  do text[--at] = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  say(text + at);
}

// --- threads ---

struct Thread {
  word stack_pointer;
  Function function;
  bool finished;
  alignas(16) char stack[0x4000];
};
constexpr unsigned kThreads = 6;  // the first is main's
Thread threads[kThreads];
unsigned created = 1, current;
volatile unsigned preemptions;

}  // namespace

extern "C" void switch_stacks(word* save, word load);
extern "C" void thread_start();
#ifdef __x86_64__
asm(R"(
switch_stacks:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");
constexpr unsigned kSavedRegisters = 6;
#else
asm(R"(
switch_stacks:
    mov 4(%esp), %eax
    mov 8(%esp), %ecx
    push %ebp
    push %ebx
    push %esi
    push %edi
    mov %esp, (%eax)
    mov %ecx, %esp
    pop %edi
    pop %esi
    pop %ebx
    pop %ebp
    ret
)");
constexpr unsigned kSavedRegisters = 4;
#endif

namespace {

// With interrupts off: the next thread that is not finished runs.
void schedule() {
  unsigned next = current;
  do next = (next + 1) % created;
  while (threads[next].finished);
  if (next == current) return;
  const unsigned previous = current;
  current = next;
  switch_stacks(&threads[previous].stack_pointer, threads[next].stack_pointer);
}

void yield() {
  asm volatile("cli" ::: "memory");
  schedule();
  asm volatile("sti" ::: "memory");
}

unsigned create(Function function) {
  asm volatile("cli" ::: "memory");
  Thread& thread = threads[created];
  thread.function = function;
  word* top = reinterpret_cast<word*>(thread.stack + sizeof thread.stack) - 2;
  *--top = reinterpret_cast<word>(&thread_start);
  for (unsigned i = 0; i < kSavedRegisters; ++i) *--top = 0;
  thread.stack_pointer = reinterpret_cast<word>(top);
  asm volatile("sti" ::: "memory");
  return created++;
}

void join(unsigned thread) {
  while (*const_cast<volatile bool*>(&threads[thread].finished) == false) yield();
}

class Mutex {
 public:
  void lock() {
    unsigned one = 1;
    for (;;) {
      asm volatile("xchgl %0, %1" : "+r"(one), "+m"(held_)::"memory");
      if (one == 0) return;
      yield();
    }
  }
  void unlock() { held_ = 0; }

 private:
  volatile unsigned held_ = 0;
};

// --- interrupts ---

void end_of_interrupt() {
  out8(0x20, 0x20);
}

volatile unsigned ticks;

void on_timer(Frame*) {
  ++ticks;
  end_of_interrupt();
  const unsigned before = current;
  schedule();
  if (before == current) ++preemptions;  // back from others
}

char keys[16];
volatile unsigned keys_in, keys_out;

void on_key(Frame*) {
  const uint8_t code = in8(0x60);
  const char* letters =
      "\0\0"
      "1234567890\0\0\0\0qwertyuiop\0\0\n\0asdfghjkl\0\0\0\0\0zxcvbnm";
  if (code < 0x33 && letters[code] != 0) {
    keys[keys_in % sizeof keys] = letters[code];
    ++keys_in;
  }
  end_of_interrupt();
}

char read_key() {
  while (keys_in == keys_out) yield();
  const char key = keys[keys_out % sizeof keys];
  ++keys_out;
  return key;
}

void start_devices() {
  const uint8_t pic[][2] = {{0x20, 0x11}, {0xa0, 0x11}, {0x21, 0x20}, {0xa1, 0x28}, {0x21, 4},
                            {0xa1, 2},    {0x21, 1},    {0xa1, 1},    {0x21, 0xfc}, {0xa1, 0xff}};
  for (const auto& step : pic) out8(step[0], step[1]);
  out8(0x43, 0x34);  // the timer, about 4000 times a second
  out8(0x40, 0x2a);
  out8(0x40, 0x01);
  hooks[0x20] = on_timer;
  hooks[0x21] = on_key;
}

// --- what the threads do ---

Mutex mutex;
volatile unsigned shared, sums[3];

void count(unsigned which) {
  for (unsigned i = 0; i < 2000; ++i) {
    mutex.lock();
    const unsigned old = shared;
    spend(20);
    shared = old + 1;
    mutex.unlock();
    sums[which] += i;
  }
}

void typist() {
  const uint8_t codes[] = {0x1f, 0x26, 0x1e, 0x26, 0x18, 0x32, 0x1c};  // "slalom"
  for (uint8_t code : codes) {
    while (in8(0x64) & 3) yield();
    asm volatile("cli");
    out8(0x64, 0xd2);  // as if the keyboard had sent it
    out8(0x60, code);
    asm volatile("sti");
    const unsigned before = ticks;
    while (ticks < before + 2) yield();
  }
}

void reader() {
  char line[17];
  unsigned length = 0;
  for (char key = read_key(); key != '\n'; key = read_key())
    if (length < 16) line[length++] = key;
  line[length] = 0;
  mutex.lock();
  say("typed: ");
  say(line);
  say("\n");
  mutex.unlock();
}

void set_clock(uint8_t index, uint8_t value) {
  out8(0x70, index);
  out8(0x71, value);
}
unsigned clock(uint8_t index) {
  out8(0x70, index);
  return in8(0x71);
}

}  // namespace

extern "C" void thread_start() {
  asm volatile("sti" ::: "memory");
  threads[current].function();
  asm volatile("cli" ::: "memory");
  threads[current].finished = true;
  schedule();
}

void run_tests() {
  say(k64 ? "kernel: 64-bit\n" : "kernel: 32-bit\n");
  start_devices();
  set_clock(0xb, 0x82);  // stopped, decimal, 24 hours
  set_clock(4, 0x12);
  set_clock(2, 0x34);
  set_clock(0, 0x00);
  set_clock(0xb, 0x02);
  say("clock: ");
  say_number(clock(4) / 16 * 10 + clock(4) % 16);
  say(":");
  say_number(clock(2) / 16 * 10 + clock(2) % 16);
  say("\n");
  asm volatile("sti");
  const unsigned counters[3] = {create([] { count(0); }), create([] { count(1); }), create([] { count(2); })};
  for (unsigned i = 0; i < 3; ++i) {
    join(counters[i]);
    say("thread ");
    say_number(i);
    say(": ");
    say_number(sums[i]);
    say("\n");
  }
  say("shared: ");
  say_number(shared);
  say("\n");
  const unsigned read = create(reader), type = create(typist);
  join(type);
  join(read);
  say(preemptions >= 10 ? "preempted: yes\n" : "preempted: hardly\n");
  // Sleeping: the timer goes on.
  const unsigned before = ticks;
  while (ticks < before + 10) asm volatile("hlt");
  asm volatile("cli");
  say("screen: ");
  char row[15];
  for (unsigned i = 0; i < 14; ++i) row[i] = static_cast<char>(at<uint16_t>(0xb8000 + 2 * i));
  row[14] = 0;
  say(row);
  say("\n");
  out32(0xf4, 0);
  for (;;) asm volatile("hlt");
}
