// The last user of an object destroys it and its mutex when it sees that the object is done. The other thread
// may still be unlocking that very mutex.
//
// expect: crash
#include <pthread.h>
#include <stdlib.h>

struct job {
  pthread_mutex_t lock;
  pthread_cond_t finished;
  int done;
};

static void* work(void* data) {
  struct job* job = data;
  pthread_mutex_lock(&job->lock);
  job->done = 1;
#ifdef FIXED
  pthread_cond_signal(&job->finished);
  pthread_mutex_unlock(&job->lock);
#else
  pthread_mutex_unlock(&job->lock);
  pthread_cond_signal(&job->finished);
#endif
  return NULL;
}

int main(void) {
  struct job job = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
  pthread_t thread;
  pthread_create(&thread, NULL, work, &job);
  pthread_detach(thread);
  pthread_mutex_lock(&job.lock);
  while (!job.done) pthread_cond_wait(&job.finished, &job.lock);
  pthread_mutex_unlock(&job.lock);
  pthread_cond_destroy(&job.finished);
  pthread_mutex_destroy(&job.lock);
}
