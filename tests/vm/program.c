// Prints results that are the same on every CPU: floating point of all kinds, the C library's math functions,
// and threads that share a mutex and a condition variable.
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 4, kRounds = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;
static long sum;
static _Thread_local long own;

static void* work(void* argument) {
  const int id = (int)(long)argument;
  for (int i = 0; i < kRounds / kThreads; ++i) {
    pthread_mutex_lock(&mutex);
    while (turn != id) pthread_cond_wait(&turned, &mutex);
    turn = (turn + 1) % kThreads;
    own += i * (id + 1);
    sum = sum * 31 + own;
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(void) {
  double values[64];
  for (int i = 0; i < 64; ++i) values[i] = sin(i * 0.7) * exp(i / 9.0) - cbrt(i) + pow(1.01, i * i);
  qsort(values, 64, sizeof values[0], compare);
  for (int i = 0; i < 64; i += 7) printf("%a %.17g\n", values[i], log1p(fabs(values[i])));
  printf("%.20Lg %La\n", sqrtl(2.0L) * 1e10L, 1.0L / 3.0L);
  printf("%.9g %.9g\n", (double)(sqrtf(3.0f) / 7.0f), (double)fmaf(1.5f, 2.25f, -0.125f));
  for (int mode = 0; mode < 4; ++mode) {
    static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    fesetround(modes[mode]);
    volatile double one = 1, three = 3, half = 2.5;
    printf("%a %ld %d\n", one / three, lrint(half), (int)rint(-half));
  }
  fesetround(FE_TONEAREST);
  feclearexcept(FE_ALL_EXCEPT);
  volatile double zero = 0;
  printf("%g %g", 1 / zero, fabs(zero / zero));
  printf(" %d %d\n", !!fetestexcept(FE_DIVBYZERO), !!fetestexcept(FE_INVALID));
  printf("%.15g %g %s\n", strtod("2.2250738585072014e-308", NULL), DBL_TRUE_MIN, strstr("haystack", "st"));

  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  printf("%ld\n", sum);
  return 0;
}
