// Two flows that are threads of one process. Each removes access rights from pages. Then the other flow's CPU
// must flush its TLB, and an interrupt tells it so. The first flow waits for that interrupt.
//
// The program of the first flow creates both threads. The second flow runs the same program, but only to
// occupy its CPU.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slalom.h"

enum { kFlows = 2, kPage = 4096, kTimes = 2 };
static char* pages[kFlows];

static void flow(long number) {
  char* page = pages[number];
  slalom_begin(number);
  for (int i = 0; i < kTimes; ++i) {
    page[0] = 1;
    mprotect(page, kPage, PROT_READ);
    mprotect(page, kPage, PROT_READ | PROT_WRITE);
  }
  munmap(page, kPage);
  slalom_end(number);
}

static void* second(void* nothing) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(1, &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus) == 0) flow(1);
  for (;;) pause();
  return nothing;
}

int main(int count, char** arguments) {
  if (count < 2 || atol(arguments[1]) != 0)
    for (;;) pause();
  for (int i = 0; i < kFlows; ++i)
    pages[i] = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  mlockall(MCL_CURRENT);
  pthread_t thread;
  if (pages[0] == MAP_FAILED || pages[1] == MAP_FAILED || pthread_create(&thread, NULL, second, NULL) != 0)
    return 1;
  flow(0);
  for (;;) pause();
}
