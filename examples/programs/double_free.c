// Two threads drop the same buffer: each reads the pointer under the lock, and frees it after the unlock.
//
// flags: -fsanitize=thread
// expect: double-free data-race
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char* buffer;

static void* drop(void* unused) {
  pthread_mutex_lock(&lock);
  char* mine = buffer;
#ifdef FIXED
  buffer = NULL;
#endif
  pthread_mutex_unlock(&lock);
  if (mine == NULL) return unused;
  free(mine);
  pthread_mutex_lock(&lock);
  buffer = NULL;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  buffer = malloc(32);
  pthread_t one, two;
  pthread_create(&one, NULL, drop, NULL);
  pthread_create(&two, NULL, drop, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
