// Lazy initialisation that sets its flag before it is complete: a thread that sees the flag uses an
// incomplete object.
//
// expect: crash
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, registry = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;
static int* settings;
static int known;

static void enrol(void) {
  pthread_mutex_lock(&registry);
  ++known;
  pthread_mutex_unlock(&registry);
}

static void* use(void* unused) {
  (void)unused;
  if (!initialised) {
    pthread_mutex_lock(&lock);
    if (!initialised) {
#ifndef FIXED
      initialised = true;
#endif
      enrol();
      settings = malloc(sizeof *settings);
      *settings = 1;
#ifdef FIXED
      initialised = true;
#endif
    }
    pthread_mutex_unlock(&lock);
  }
  *(volatile int*)settings += 1;
  return NULL;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, use, NULL);
  pthread_create(&two, NULL, use, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
