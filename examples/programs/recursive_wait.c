// A thread that holds a recursive mutex twice waits on a condition variable: the wait releases only one of
// the two locks.
//
// expect: deadlock
#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t lock;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static bool done;

static void await(void) {
  pthread_mutex_lock(&lock);
  while (!done) pthread_cond_wait(&ready, &lock);
  pthread_mutex_unlock(&lock);
}

static void* consume(void* unused) {
#ifndef FIXED
  pthread_mutex_lock(&lock);
#endif
  await();
#ifndef FIXED
  pthread_mutex_unlock(&lock);
#endif
  return unused;
}
static void* produce(void* unused) {
  pthread_mutex_lock(&lock);
  done = true;
  pthread_cond_signal(&ready);
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &recursive);
  pthread_t one, two;
  pthread_create(&one, NULL, produce, NULL);
  pthread_create(&two, NULL, consume, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
