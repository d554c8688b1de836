// A value and its shadow are updated one after the other. A checker that reads the shadow first and the
// value later sees a difference of two only if each thread is stopped in the middle once.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int value, shadow;

static void set(int* where, int to) {
  pthread_mutex_lock(&lock);
  *where = to;
  pthread_mutex_unlock(&lock);
}
static int get(const int* where) {
  pthread_mutex_lock(&lock);
  int seen = *where;
  pthread_mutex_unlock(&lock);
  return seen;
}

static void* update(void* unused) {
  for (int i = 1; i <= 2; ++i) {
    set(&value, i);
    set(&shadow, i);
  }
  return unused;
}
static void* check(void* unused) {
#ifdef FIXED
  int late = get(&value);
  int early = get(&shadow);
  assert(late - early < 2);
#else
  int early = get(&shadow);
  int late = get(&value);
  assert(late - early < 2);
#endif
  return unused;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, check, NULL);
  pthread_create(&two, NULL, update, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
