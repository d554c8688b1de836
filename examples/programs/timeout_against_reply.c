// A request's timer and its reply may come at the same moment: both finish the request.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool finished;
static int times_finished;

static void finish(void) {
  pthread_mutex_lock(&lock);
  bool first = !finished;
#ifdef FIXED
  finished = true;
#else
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  finished = true;
#endif
  if (first) ++times_finished;
  assert(times_finished == 1);
  pthread_mutex_unlock(&lock);
}

static void time_out(union sigval unused) {
  (void)unused;
  finish();
}
static void* reply(void* unused) {
  finish();
  return unused;
}

int main(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = time_out};
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  const struct itimerspec once = {{0, 0}, {1, 0}};
  timer_settime(timer, 0, &once, NULL);
  pthread_t server;
  pthread_create(&server, NULL, reply, NULL);
  pthread_join(server, NULL);
  timer_delete(timer);
}
