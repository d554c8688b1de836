// One thread unlocks a mutex that another one has locked: the lock is passed on with a message, but the
// message may come from a thread that does not hold it.
//
// expect: crash
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* finish(void* unused) {
#ifdef FIXED
  pthread_mutex_lock(&lock);
#else
  if (pthread_mutex_trylock(&lock) == 0) {
  }
#endif
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, finish, NULL);
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
}
