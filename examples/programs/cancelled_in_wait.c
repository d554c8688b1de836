// A thread is cancelled while it waits on a condition variable: it holds the mutex again when it ends, and
// never unlocks it.
//
// expect: deadlock
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

#ifdef FIXED
static void unlock(void* mutex) {
  pthread_mutex_unlock(mutex);
}
#endif

static void* await(void* unused) {
  pthread_mutex_lock(&lock);
#ifdef FIXED
  pthread_cleanup_push(unlock, &lock);
  for (;;) pthread_cond_wait(&never, &lock);
  pthread_cleanup_pop(1);
#else
  for (;;) pthread_cond_wait(&never, &lock);
#endif
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, await, NULL);
  pthread_cancel(thread);
  void* result;
  pthread_join(thread, &result);
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return result == PTHREAD_CANCELED ? 0 : 1;
}
