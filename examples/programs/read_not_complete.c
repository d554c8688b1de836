// A record is read asynchronously. The wait for it has a time limit. A program that does not check how the
// wait ended uses the old contents of the buffer.
//
// expect: assertion
#include <aio.h>
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static int ends[2];

static void* serve(void* unused) {
  assert(write(ends[1], "balance", 8) == 8);
  return unused;
}

int main(void) {
  static char record[8];
  assert(pipe(ends) == 0);
  pthread_t server;
  pthread_create(&server, NULL, serve, NULL);
  struct aiocb request = {.aio_fildes = ends[0], .aio_buf = record, .aio_nbytes = sizeof record};
  request.aio_sigevent.sigev_notify = SIGEV_NONE;
  const struct aiocb* const list[] = {&request};
  const struct timespec second = {1, 0};
  assert(aio_read(&request) == 0);
#ifdef FIXED
  while (aio_error(&request) == EINPROGRESS)
#endif
    aio_suspend(list, 1, &second);
  assert(strcmp(record, "balance") == 0);
  pthread_join(server, NULL);
}
