// The producer of a bounded buffer waits for a free place while it holds the lock that the consumer needs to
// free one.
//
// expect: deadlock
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t places, items;
static int count;

static void* produce(void* unused) {
  (void)unused;
  for (int i = 0; i < 2; ++i) {
#ifdef FIXED
    sem_wait(&places);
    pthread_mutex_lock(&lock);
#else
    pthread_mutex_lock(&lock);
    sem_wait(&places);
#endif
    ++count;
    pthread_mutex_unlock(&lock);
    sem_post(&items);
  }
  return NULL;
}
static void* consume(void* unused) {
  (void)unused;
  for (int i = 0; i < 2; ++i) {
    sem_wait(&items);
    pthread_mutex_lock(&lock);
    --count;
    pthread_mutex_unlock(&lock);
    sem_post(&places);
  }
  return NULL;
}

int main(void) {
  sem_init(&places, 0, 1);
  sem_init(&items, 0, 0);
  pthread_t producer, consumer;
  pthread_create(&producer, NULL, produce, NULL);
  pthread_create(&consumer, NULL, consume, NULL);
  pthread_join(producer, NULL);
  pthread_join(consumer, NULL);
}
