// main() gives the worker a second and takes the result. On a busy machine one second may not be enough.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int result;

static void* work(void* unused) {
  pthread_mutex_lock(&lock);
  result = 42;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
#ifdef FIXED
  pthread_join(thread, NULL);
#else
  sleep(1);
#endif
  pthread_mutex_lock(&lock);
  assert(result == 42);
  pthread_mutex_unlock(&lock);
#ifndef FIXED
  pthread_join(thread, NULL);
#endif
}
