// Two functions guard the same list with different locks.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER, count_lock = PTHREAD_MUTEX_INITIALIZER;
static int list[4], length;

static void counted(void) {
  pthread_mutex_lock(&count_lock);
  pthread_mutex_unlock(&count_lock);
}

static void* append(void* unused) {
  (void)unused;
  pthread_mutex_lock(&list_lock);
  int at = length;
  counted();
  list[at] = 1;
  length = at + 1;
  pthread_mutex_unlock(&list_lock);
  return NULL;
}
static void* append_other(void* unused) {
  (void)unused;
#ifdef FIXED
  pthread_mutex_lock(&list_lock);
  list[length++] = 2;
  pthread_mutex_unlock(&list_lock);
#else
  pthread_mutex_lock(&count_lock);
  list[length++] = 2;
  pthread_mutex_unlock(&count_lock);
#endif
  return NULL;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, append, NULL);
  pthread_create(&two, NULL, append_other, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  assert(length == 2);
}
