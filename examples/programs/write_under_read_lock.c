// A function that only reads, most of the time, holds the lock for reading when it writes.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int hits;

static void* find(void* unused) {
#ifdef FIXED
  pthread_rwlock_wrlock(&lock);
#else
  pthread_rwlock_rdlock(&lock);
#endif
  int seen = hits;
  pthread_mutex_lock(&log_lock);
  pthread_mutex_unlock(&log_lock);
  hits = seen + 1;
  pthread_rwlock_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, find, NULL);
  pthread_create(&two, NULL, find, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  assert(hits == 2);
}
