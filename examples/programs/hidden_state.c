// Two threads split their lines with strtok(), which keeps its position in one variable for all of them.
//
// expect: assertion crash
#include <assert.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int words;

static void* count(void* line) {
  int mine = 0;
#ifdef FIXED
  char* rest;
  for (char* word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
#else
  for (char* word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
#endif
    ++mine;
    pthread_mutex_lock(&lock);
    ++words;
    pthread_mutex_unlock(&lock);
  }
  assert(mine == 3);
  return NULL;
}

int main(void) {
  char first[] = "one two three", second[] = "four five six";
  pthread_t one, other;
  pthread_create(&one, NULL, count, first);
  pthread_create(&other, NULL, count, second);
  pthread_join(one, NULL);
  pthread_join(other, NULL);
  assert(words == 6);
}
