// A hundred clerks draw numbers. Reading the next number and moving it on are two critical sections.
//
// options: --no-shrink
// expect: assertion
#include <assert.h>
#include <pthread.h>

enum { kClerks = 100 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_number;
static int drawn[kClerks];

static void* draw(void* unused) {
  pthread_mutex_lock(&lock);
  int mine = next_number;
#ifdef FIXED
  ++next_number;
#endif
  pthread_mutex_unlock(&lock);
#ifndef FIXED
  pthread_mutex_lock(&lock);
  next_number = mine + 1;
  pthread_mutex_unlock(&lock);
#endif
  assert(mine < kClerks && drawn[mine] == 0);
  drawn[mine] = 1;
  return unused;
}

int main(void) {
  pthread_t clerks[kClerks];
  for (int i = 0; i < kClerks; ++i) pthread_create(&clerks[i], NULL, draw, NULL);
  for (int i = 0; i < kClerks; ++i) pthread_join(clerks[i], NULL);
}
