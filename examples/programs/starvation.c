// Readers come and go until the writer has had its turn, and the reader-writer lock admits them while the
// writer waits: as long as one of them is always inside, the writer never gets in.
//
// options: --max-steps 3000
// expect: livelock
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t entrance = PTHREAD_MUTEX_INITIALIZER;
static atomic_int written;

// In the twin, threads wait for the lock at an entrance, where none passes the writer.
static void enter(int (*take)(pthread_rwlock_t*)) {
#ifdef FIXED
  pthread_mutex_lock(&entrance);
  take(&lock);
  pthread_mutex_unlock(&entrance);
#else
  (void)entrance;
  take(&lock);
#endif
}

static void* read_on(void* unused) {
  while (!written) {
    enter(pthread_rwlock_rdlock);
    sched_yield();
    pthread_rwlock_unlock(&lock);
  }
  return unused;
}

static void* write_once(void* unused) {
  enter(pthread_rwlock_wrlock);
  written = 1;
  pthread_rwlock_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t readers[2], writer;
  for (int i = 0; i < 2; ++i) pthread_create(&readers[i], NULL, read_on, NULL);
  pthread_create(&writer, NULL, write_once, NULL);
  pthread_join(writer, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(readers[i], NULL);
  return 0;
}
