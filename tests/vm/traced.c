// Makes system calls without a library and prints each with its result, so that a trace can be compared with
// what the program saw. It prints everything with one write at the end.
static char said[4096];
static unsigned long size;

static long call(long number, long a, long b, long c, long d) {
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
}

static void say(const char* text) {
  while (*text != 0 && size < sizeof(said)) said[size++] = *text++;
}

static void say_number(long number) {
  char digits[20];
  int count = 0;
  if (number < 0) say("-");
  unsigned long rest = number < 0 ? 0 - (unsigned long)number : (unsigned long)number;
  do {
    digits[count++] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  while (count > 0) {
    const char one[2] = {digits[--count], 0};
    say(one);
  }
}

static long told(const char* name, long number, long a, long b, long c, long d) {
  const long result = call(number, a, b, c, d);
  say("did ");
  say(name);
  say(" ");
  say_number(result);
  say("\n");
  return result;
}

void _start(void) {
  static char buffer[64];
  static int ends[2];
  told("getpid", 39, 0, 0, 0, 0);
  const long file = told("open", 2, (long)"/tmp/traced", 0102, 0644, 0);
  told("write", 1, file, (long)"twelve bytes", 12, 0);
  told("lseek", 8, file, 4, 0, 0);
  told("read", 0, file, (long)buffer, sizeof(buffer), 0);
  told("close", 3, file, 0, 0, 0);
  told("close", 3, file, 0, 0, 0);  // already closed
  told("open", 2, (long)"/no/such/file", 0, 0, 0);
  told("pipe", 22, (long)ends, 0, 0, 0);
  told("sched_yield", 24, 0, 0, 0, 0);
  told("unlink", 87, (long)"/tmp/traced", 0, 0, 0);
  told("prctl", 157, 15, (long)"renamed", 0, 0);
  told("getppid", 110, 0, 0, 0, 0);
  call(1, 1, (long)said, (long)size, 0);
  call(231, 0, 0, 0, 0);
}
