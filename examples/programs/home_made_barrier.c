// A barrier that is used twice but does not distinguish its rounds: a fast thread enters the second round
// before a slow one has left the first.
//
// expect: deadlock lost-wakeup
#include <pthread.h>

enum { kThreads = 2 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
static int here;
static int round_number;

static void meet(void) {
  pthread_mutex_lock(&lock);
#ifdef FIXED
  int mine = round_number;
  if (++here == kThreads) {
    here = 0;
    ++round_number;
    pthread_cond_broadcast(&all_here);
  }
  while (mine == round_number) pthread_cond_wait(&all_here, &lock);
#else
  (void)round_number;
  if (++here == kThreads) pthread_cond_broadcast(&all_here);
  while (here < kThreads) pthread_cond_wait(&all_here, &lock);
  here = 0;
#endif
  pthread_mutex_unlock(&lock);
}

static void* work(void* unused) {
  (void)unused;
  meet();
  meet();
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}
