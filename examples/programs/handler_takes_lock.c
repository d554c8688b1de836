// A signal handler takes a lock that the interrupted thread may hold: the thread waits for itself.
//
// expect: deadlock
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int reloads;

static void reload(int signal) {
  (void)signal;
  pthread_mutex_lock(&lock);
  ++reloads;
  pthread_mutex_unlock(&lock);
}

static void* operate(void* main_thread) {
  pthread_kill(*(pthread_t*)main_thread, SIGHUP);
  return NULL;
}

int main(void) {
  struct sigaction action = {.sa_handler = reload};
  sigaction(SIGHUP, &action, NULL);
  pthread_t self = pthread_self(), operator;
  pthread_create(&operator, NULL, operate, &self);
#ifdef FIXED
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &hangup, NULL);
#endif
  pthread_mutex_lock(&lock);
  reloads = 0;
  pthread_mutex_unlock(&lock);
#ifdef FIXED
  pthread_sigmask(SIG_UNBLOCK, &hangup, NULL);
#endif
  pthread_join(operator, NULL);
}
