// Two threads release a connection, and both close it. By the second close the number already belongs to
// another file, which its owner then finds closed.
//
// expect: assertion crash
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int connection[2], mail[2];
static int open_ends = 1;

static void* give_up(void* unused) {
#ifdef FIXED
  pthread_mutex_lock(&lock);
  if (open_ends == 1) close(connection[0]);
  open_ends = 0;
  pthread_mutex_unlock(&lock);
#else
  if (open_ends == 1) close(connection[0]);
  open_ends = 0;
#endif
  return unused;
}

static void* send_mail(void* unused) {
  pthread_mutex_lock(&lock);
  assert(pipe(mail) == 0);
  pthread_mutex_unlock(&lock);
  char byte = 1;
  assert(write(mail[1], &byte, 1) == 1 && "somebody else closed it");
  assert(read(mail[0], &byte, 1) == 1 && "somebody else closed it");
  return unused;
}

int main(void) {
  assert(pipe(connection) == 0);
  pthread_t one, other, sender;
  pthread_create(&one, NULL, give_up, NULL);
  pthread_create(&other, NULL, give_up, NULL);
  pthread_create(&sender, NULL, send_mail, NULL);
  pthread_join(one, NULL);
  pthread_join(other, NULL);
  pthread_join(sender, NULL);
}
