// A record is copied with memcpy while another thread fills it in: the copy may be half old and half new. The
// accesses are made inside libc.
//
// flags: -fsanitize=thread
// options: --fail-on race
// expect: data-race assertion
#include <assert.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { long first, last; } record;
static volatile size_t size = sizeof record;  // not known to the compiler

static void* fill(void* unused) {
  const long values[2] = {7, 7};
  pthread_mutex_lock(&lock);
  memcpy(&record, values, size);
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t writer;
  pthread_create(&writer, NULL, fill, NULL);
  long copy[2];
#ifdef FIXED
  pthread_mutex_lock(&lock);
#endif
  memcpy(copy, &record, size);
#ifdef FIXED
  pthread_mutex_unlock(&lock);
#endif
  assert(copy[0] == copy[1]);
  pthread_join(writer, NULL);
}
