// A reference count that is lowered under the lock but compared after the unlock: two threads can both see
// zero, and both release the object.
//
// expect: assertion
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct object {
  int references;
  bool in_use;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* release(void* data) {
  struct object* object = data;
  pthread_mutex_lock(&lock);
  int left = --object->references;
  pthread_mutex_unlock(&lock);
#ifndef FIXED
  pthread_mutex_lock(&lock);
  left = object->references;
  pthread_mutex_unlock(&lock);
#endif
  if (left == 0) {
    assert(object->in_use);
    object->in_use = false;
  }
  return NULL;
}

int main(void) {
  struct object object = {2, true};
  pthread_t one, two;
  pthread_create(&one, NULL, release, &object);
  pthread_create(&two, NULL, release, &object);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
