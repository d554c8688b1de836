// A thread waits for a signal without checking whether the event has already happened.
//
// expect: lost-wakeup
#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static bool done;

static void* worker(void* unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  done = true;
  pthread_cond_signal(&ready);
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, worker, NULL);
  pthread_mutex_lock(&lock);
#ifdef FIXED
  while (!done)
#endif
    pthread_cond_wait(&ready, &lock);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
}
