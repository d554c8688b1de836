// Two transfers between two accounts in opposite directions take the same two locks in opposite orders.
//
// expect: deadlock
#include <pthread.h>

struct account {
  pthread_mutex_t lock;
  int money;
};
static struct account a = {PTHREAD_MUTEX_INITIALIZER, 10}, b = {PTHREAD_MUTEX_INITIALIZER, 10};

static void transfer(struct account* from, struct account* to, int amount) {
  struct account *first = from, *second = to;
#ifdef FIXED
  if (first > second) first = to, second = from;
#endif
  pthread_mutex_lock(&first->lock);
  pthread_mutex_lock(&second->lock);
  from->money -= amount;
  to->money += amount;
  pthread_mutex_unlock(&second->lock);
  pthread_mutex_unlock(&first->lock);
}

static void* there(void* unused) {
  (void)unused;
  transfer(&a, &b, 1);
  return NULL;
}
static void* back(void* unused) {
  (void)unused;
  transfer(&b, &a, 1);
  return NULL;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, there, NULL);
  pthread_create(&two, NULL, back, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}
