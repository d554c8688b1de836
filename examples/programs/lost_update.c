// Two threads add to a counter. Each reads it under the lock and writes it under the lock, but in two
// separate critical sections: an update of the other thread in between gets lost.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void* add_one(void* unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  int value = counter;
#ifndef FIXED
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
#endif
  counter = value + 1;
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, add_one, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  assert(counter == 2);
}
