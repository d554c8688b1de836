// A thread gets a pointer to an object that its creator frees without having joined it.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* use(void* data) {
  int* numbers = data;
  pthread_mutex_lock(&lock);
  assert(numbers[5] == 5);
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  int* numbers = malloc(16 * sizeof *numbers);
  for (int i = 0; i < 16; ++i) numbers[i] = i;
  pthread_t thread;
  pthread_create(&thread, NULL, use, numbers);
#ifdef FIXED
  pthread_join(thread, NULL);
  free(numbers);
#else
  free(numbers);
  volatile int* others = malloc(16 * sizeof *others);
  for (int i = 0; i < 16; ++i) others[i] = 0;
  pthread_join(thread, NULL);
  free((void*)others);
#endif
}
