// Two sections of an OpenMP program move a unit from one account to the other. Each account has a critical
// section of its own, and the second section of the program takes the two in the other order: each can wait
// for the one that the other has.
//
// flags: -fopenmp
// expect: deadlock
static int first_account = 10, second_account = 10;

static void there(void) {
#pragma omp critical(first)
  {
    --first_account;
#pragma omp critical(second)
    ++second_account;
  }
}

#ifdef FIXED
static void back(void) {
#pragma omp critical(first)
  {
    ++first_account;
#pragma omp critical(second)
    --second_account;
  }
}
#else
static void back(void) {
#pragma omp critical(second)
  {
    --second_account;
#pragma omp critical(first)
    ++first_account;
  }
}
#endif

int main(void) {
#pragma omp parallel sections num_threads(2)
  {
#pragma omp section
    there();
#pragma omp section
    back();
  }
  return first_account + second_account - 20;
}
