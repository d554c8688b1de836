// A reader that finds work to do asks for the write lock while it still reads: it waits for itself, or two
// such readers for each other.
//
// expect: deadlock
#include <pthread.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int stale = 1;

static void* refresh(void* unused) {
  (void)unused;
  pthread_rwlock_rdlock(&lock);
  int must = stale;
#ifdef FIXED
  pthread_rwlock_unlock(&lock);
#endif
  if (must) {
    pthread_rwlock_wrlock(&lock);
    stale = 0;
    pthread_rwlock_unlock(&lock);
  }
#ifndef FIXED
  pthread_rwlock_unlock(&lock);
#endif
  return NULL;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, refresh, NULL);
  pthread_create(&two, NULL, refresh, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
