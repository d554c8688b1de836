// A reader takes the pointer to the configuration under the lock and uses it after the unlock: meanwhile it
// is replaced, and the old one is freed.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int* config;

static int* make(int number) {
  int* made = malloc(64);
  for (int i = 0; i < 16; ++i) made[i] = number;
  return made;
}

static void* reload(void* unused) {
  pthread_mutex_lock(&lock);
  free((void*)config);
  volatile int* reused = make(-1);
  config = make(2);
  free((void*)reused);
  pthread_mutex_unlock(&lock);
  return unused;
}
static void* use(void* unused) {
  pthread_mutex_lock(&lock);
  volatile int* mine = config;
#ifndef FIXED
  pthread_mutex_unlock(&lock);
#endif
  pthread_mutex_lock(&log_lock);
  pthread_mutex_unlock(&log_lock);
  assert(mine[8] > 0);
#ifdef FIXED
  pthread_mutex_unlock(&lock);
#endif
  return unused;
}

int main(void) {
  config = make(1);
  pthread_t one, two;
  pthread_create(&one, NULL, use, NULL);
  pthread_create(&two, NULL, reload, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
