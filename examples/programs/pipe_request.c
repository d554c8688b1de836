// A client sends a request through one pipe and reads the answer from another. The server first reads a
// request that a second client was to send; that client gives up if another one was faster.
//
// expect: deadlock
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int requests[2], answers[2];
static int asked;

static void* client(void* unused) {
  char byte = 'r';
  pthread_mutex_lock(&lock);
  int first = asked++ == 0;
  pthread_mutex_unlock(&lock);
#ifdef FIXED
  first = 1;
#endif
  if (first && write(requests[1], &byte, 1) == 1) (void)!read(answers[0], &byte, 1);
  return unused;
}
static void* server(void* unused) {
  char bytes[2];
  for (int i = 0; i < 2; ++i)
    if (read(requests[0], &bytes[i], 1) != 1) return unused;
  (void)!write(answers[1], bytes, 2);
  return unused;
}

int main(void) {
  if (pipe(requests) != 0 || pipe(answers) != 0) return 1;
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, server, NULL);
  pthread_create(&threads[1], NULL, client, NULL);
  pthread_create(&threads[2], NULL, client, NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
}
