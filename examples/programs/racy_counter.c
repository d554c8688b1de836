// Two threads add to a plain variable without any lock: a data race, and sometimes a lost update.
//
// flags: -fsanitize=thread
// schedules: 300
// expect: data-race assertion
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void* add_one(void* unused) {
#ifdef FIXED
  pthread_mutex_lock(&lock);
#endif
  counter = counter + 1;
#ifdef FIXED
  pthread_mutex_unlock(&lock);
#endif
  (void)lock;
  return unused;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, add_one, NULL);
  pthread_create(&two, NULL, add_one, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  assert(counter == 2);
}
