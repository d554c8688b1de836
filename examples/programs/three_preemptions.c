// Two threads pass a token back and forth by testing and taking in separate steps. Only if each is stopped at
// the right moment, three times in all, do both believe that they hold it.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int phase = 1;

static int look(void) {
  pthread_mutex_lock(&lock);
  int seen = phase;
  pthread_mutex_unlock(&lock);
  return seen;
}
static void move(int from, int to) {
  pthread_mutex_lock(&lock);
#ifdef FIXED
  if (phase == from) phase = to;
#else
  (void)from;
  phase = to;
#endif
  pthread_mutex_unlock(&lock);
}

static void* forward(void* unused) {
  if (look() == 2) move(2, 3);
  return unused;
}
static void* back(void* unused) {
  if (look() == 1) move(1, 2);
  if (look() == 2) move(2, 4);
  return unused;
}
static void* watch(void* unused) {
  int before = look();
  int after = look();
  assert(!(before == 4 && after == 3));
  return unused;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, forward, NULL);
  pthread_create(&threads[1], NULL, back, NULL);
  pthread_create(&threads[2], NULL, watch, NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
}
