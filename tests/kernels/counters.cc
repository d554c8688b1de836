// A little teaching kernel for several CPUs: each starts the next one's work only through shared memory: a
// spinlock, a ticket lock, a barrier, and messages that each CPU sends to all others.
#include "smp.h"

namespace {

constexpr unsigned kRounds = 500, kMessage = 0x60;

class Spinlock {
 public:
  void lock() {
    unsigned one = 1;
    for (;;) {
      asm volatile("xchgl %0, %1" : "+r"(one), "+m"(held_)::"memory");
      if (one == 0) return;
      while (held_ != 0) asm volatile("pause");
    }
  }
  void unlock() { held_ = 0; }

 private:
  volatile unsigned held_ = 0;
};

unsigned fetch_and_add(volatile unsigned& value) {
  unsigned one = 1;
  asm volatile("lock xaddl %0, %1" : "+r"(one), "+m"(value)::"memory");
  return one;
}

class TicketLock {
 public:
  void lock() {
    const unsigned mine = fetch_and_add(next_);
    while (serving_ != mine) asm volatile("pause");
  }
  void unlock() { serving_ = serving_ + 1; }

 private:
  volatile unsigned next_ = 0, serving_ = 0;
};

unsigned cpus;
Spinlock spinlock;
TicketLock ticket_lock;
volatile unsigned by_spinlock, by_ticket, by_locked_add, arrived, messages;

void wait_for_all() {
  const unsigned goal = (fetch_and_add(arrived) / cpus + 1) * cpus;
  while (arrived < goal) asm volatile("pause");
}

void work() {
  apic(kSpurious) = 0x1ff;
  apic(kTaskPriority) = 0;
  wait_for_all();
  for (unsigned i = 0; i < kRounds; ++i) {
    spinlock.lock();
    by_spinlock = by_spinlock + 1;  // a load and a store: only the lock keeps them together
    spinlock.unlock();
    ticket_lock.lock();
    by_ticket = by_ticket + 1;
    ticket_lock.unlock();
    (void)fetch_and_add(by_locked_add);
  }
  wait_for_all();
  asm volatile("sti");
  wait_for_all();
  send(0, 0xc0000 | (kMessage + this_cpu()));  // to all others; equal ones that wait would become one
  while (messages < cpus * (cpus - 1)) asm volatile("pause");
  asm volatile("cli");
  wait_for_all();
}

void say(const char* name, unsigned value) {
  char text[11];
  unsigned at = sizeof text - 1;
  text[at] = 0;
  do text[--at] = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  print(name);
  print(text + at);
  print("\n");
}

}  // namespace

void run_tests() {
  cpus = cpu_count();
  say("cpus: ", cpus);
  for (unsigned cpu = 0; cpu < cpus; ++cpu)
    hooks[kMessage + cpu] = [](Frame*) {
      (void)fetch_and_add(messages);
      apic(kEndOfInterrupt) = 0;
    };
  for (unsigned cpu = 1; cpu < cpus; ++cpu) start_cpu(cpu, work);
  work();
  say("spinlock: ", by_spinlock);
  say("ticket lock: ", by_ticket);
  say("locked add: ", by_locked_add);
  say("messages: ", messages);
  out32(0xf4, 0);
  for (;;) asm volatile("hlt");
}
