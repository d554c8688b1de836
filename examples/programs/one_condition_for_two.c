// A buffer of one element whose producers and consumers wait on one condition variable. A signal meant for a
// consumer can wake a producer, which goes back to sleep, and then all threads sleep.
//
// expect: deadlock lost-wakeup
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int count;

static void tell(void) {
#ifdef FIXED
  pthread_cond_broadcast(&changed);
#else
  pthread_cond_signal(&changed);
#endif
}

static void* produce(void* unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  while (count == 1) pthread_cond_wait(&changed, &lock);
  count = 1;
  tell();
  pthread_mutex_unlock(&lock);
  return NULL;
}
static void* consume(void* unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  while (count == 0) pthread_cond_wait(&changed, &lock);
  count = 0;
  tell();
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t threads[6];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, consume, NULL);
  for (int i = 3; i < 6; ++i) pthread_create(&threads[i], NULL, produce, NULL);
  for (int i = 0; i < 6; ++i) pthread_join(threads[i], NULL);
}
