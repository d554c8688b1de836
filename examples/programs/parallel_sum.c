// A loop is shared out among the threads of a team with OpenMP. Each adds to the same sum, and between
// reading it and writing it another one can do the same: without the reduction an addition gets lost.
//
// flags: -fopenmp -fsanitize=thread
// expect: assertion data-race
#include <assert.h>

#ifdef FIXED
#define TOGETHER reduction(+ : sum)
#else
#define TOGETHER
#endif

int main(void) {
  int sum = 0;
#pragma omp parallel for num_threads(2) TOGETHER
  for (int i = 1; i <= 4; ++i) sum += i;
  assert(sum == 10);
}
