// A periodic timer's handler reads a record that the thread it interrupts is just changing.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t used, limit = 10;

static void check(int signal) {
  (void)signal;
  assert(used <= limit);
}

static void grow(int by) {
  pthread_mutex_lock(&lock);
#ifdef FIXED
  limit += by;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  used += by;
#else
  used += by;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  limit += by;
#endif
  pthread_mutex_unlock(&lock);
}

static void* work(void* unused) {
  grow(20);
  return unused;
}

int main(void) {
  struct sigaction action = {.sa_handler = check};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval every = {{0, 10000}, {0, 10000}};
  setitimer(ITIMER_REAL, &every, NULL);
  pthread_t worker;
  pthread_create(&worker, NULL, work, NULL);
  pthread_join(worker, NULL);
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
}
