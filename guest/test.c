// The agent in test mode: prepares a kernel test, starts its flows, and runs the check afterwards.
//
// slalom gives the plan as input 0: texts that end with a zero, each beginning with a letter:
//   L name              a module that must be loaded by now (kModuleList)
//   M path parameters   a module to load
//   S command           a set-up command, which must succeed
//   F path              a flow, pinned to the CPU of its number: a program; without a path, a list of calls
//   Q                   the last flow is a list of calls that has prepared calls of its own
//   T number            the last flow is a thread of the process of that flow, which may be itself
//   A                   there are calls that are prepared for all flows
//   C command           the check, run when all flows have ended
// Failures are reported with the number of the text, counted from 1, so that slalom can name the user's line.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "slalom.h"

#define KERNEL_THREAD 0x00200000  // PF_KTHREAD in /proc/PID/stat

static char plan[64 * 1024];
static char threads[64 * 1024];

static void fail(int record, const char* format, ...) {
  static char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  slalom_call(SLALOM_FAIL, (long)text, size < (int)sizeof text ? size : (int)sizeof text - 1, record);
}

static void stop(void) {
  for (;;) pause();
}

static int pin(pid_t thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(thread, sizeof set, &set);
}

// Returns the CPU that a thread is bound to; -1 if it may run on several.
static int bound_to(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(thread, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1) return -1;
  int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  return cpu;
}

static void write_text(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t ignored = write(file, text, strlen(text));
  (void)ignored;
  close(file);
}

// Writes a line for one kernel thread: "name cpu how". `how` is pinned (by slalom), bound (by the kernel) or
// free.
static size_t pin_kernel_thread(pid_t pid, int cpu, char* line, size_t room) {
  char path[64];
  char text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = '\0';
  char* name = strchr(text, '(');
  char* end = strrchr(text, ')');
  unsigned flags = 0;
  if (name == NULL || end == NULL || sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %u", &flags) != 1) return 0;
  if ((flags & KERNEL_THREAD) == 0) return 0;
  *end = '\0';
  const char* how = "bound";
  int where = bound_to(pid);
  if (where < 0) {
    how = pin(pid, cpu) == 0 ? "pinned" : "free";
    where = bound_to(pid);
  }
  const int length = snprintf(line, room, "%s %d %s\n", name + 1, where, how);
  return length > 0 && (size_t)length < room ? (size_t)length : 0;
}

static void pin_kernel_threads(int cpu) {
  char mask[16];
  snprintf(mask, sizeof mask, "%x\n", 1u << cpu);
  write_text("/sys/devices/virtual/workqueue/cpumask", mask);
  DIR* directory = opendir("/proc");
  if (directory == NULL) return;
  size_t size = 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    const pid_t pid = atoi(entry->d_name);
    if (pid > 0) size += pin_kernel_thread(pid, cpu, threads + size, sizeof threads - size);
  }
  closedir(directory);
  slalom_call(SLALOM_OUTPUT, SLALOM_THREADS, (long)threads, (long)size);
}

struct Flow {
  const char* program;  // "": a list of calls
  int record;           // of the plan
  int leader;           // the first flow of its process
  int is_prepared;      // it has calls to make before it is ready
};
static struct Flow flows[MAX_FLOWS];
static int flow_count;

static void* run_thread(void* number) {
  const long flow = (long)number;
  if (pin(0, (int)flow) != 0) _exit(126);
  execute_flow(flow, flows[flow].is_prepared);
  _exit(0);  // the test is over
}

// Makes this process that of the lists of calls with this leader.
static void run_process(int leader) {
  for (long i = leader + 1; i < flow_count; ++i) {
    pthread_t thread;
    if (flows[i].leader == leader && pthread_create(&thread, NULL, run_thread, (void*)i) != 0) _exit(126);
  }
  run_thread((void*)(long)leader);
}

static int shares_process(int flow) {
  for (int i = 0; i < flow_count; ++i)
    if (i != flow && flows[i].leader == flow) return 1;
  return 0;
}

static void close_all(void) {
  for (int file = 3; file < 64; ++file) close(file);
}

// Starts the process of a flow, if no earlier flow leads it. `inherits`: the flow gets the descriptors and
// the memory of this process. Returns 0 if there is nothing to start.
static pid_t start_flow(int flow, int inherits) {
  if (flows[flow].leader != flow) return 0;
  const pid_t child = fork();
  if (child != 0) return child;
  const char* program = flows[flow].program;
  char number[16];
  snprintf(number, sizeof number, "%d", flow);
  setenv("SLALOM_FLOW", number, 1);
  if (pin(0, flow) != 0) _exit(126);
  if (program[0] != '\0') {
    execl(program, program, number, (char*)NULL);
    complain("cannot run", program);
    _exit(127);
  }
  if (!inherits && !shares_process(flow) && !flows[flow].is_prepared) {
    execl("/init", FLOW_NAME, number, (char*)NULL);
    _exit(127);
  }
  if (!inherits) close_all();
  run_process(flow);
  _exit(0);
}

// A shell for the check. Starting a shell takes millions of instructions in every execution. So it is started
// before the first one, and sleeps until a byte is written to `go_on`.
struct Check {
  pid_t shell;  // 0 if there is no check
  int go_on;
};

static int sleeps(pid_t process) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1;  // the process has ended
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[size > 0 ? size : 0] = '\0';
  const char* state = strrchr(text, ')');
  return state == NULL || state[1] == '\0' || state[2] == 'S' || state[2] == 'Z';
}

static struct Check prepare_check(const char* command) {
  enum { kReady = 8, kGoOn = 9 };  // descriptors of the shell
  static char script[sizeof plan + 64];
  struct Check check = {0, -1};
  int ready[2], go_on[2];
  if (command == NULL || pipe2(ready, O_CLOEXEC) != 0 || pipe2(go_on, O_CLOEXEC) != 0) return check;
  snprintf(script, sizeof script, "echo >&%d\nread -r _ <&%d\nexec %d>&- %d<&-\n%s", kReady, kGoOn, kReady,
           kGoOn, command);
  check.go_on = go_on[1];
  check.shell = fork();
  if (check.shell == 0) {
    if (dup2(ready[1], kReady) < 0 || dup2(go_on[0], kGoOn) < 0) _exit(127);
    run_shell(script);
  }
  close(ready[1]);
  close(go_on[0]);
  char byte;
  if (read(ready[0], &byte, 1) == 1)
    while (!sleeps(check.shell)) usleep(1000);
  close(ready[0]);
  return check;
}

static int run_check(const struct Check* check) {
  if (check->shell <= 0) return check->shell == 0 ? 0 : 127;
  if (write(check->go_on, "\n", 1) != 1) return 127;
  close(check->go_on);
  return status_of(check->shell);
}

// After this call, a flow on the CPU of this process cannot keep it from going to sleep.
static void sleep_first(void) {
  const struct sched_param first = {.sched_priority = 1};
  sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

// Starts the flows and waits for their ends.
static void run_flows(int inherits) {
  pid_t children[MAX_FLOWS];
  int left = 0;
  for (int i = 0; i < flow_count; ++i) {
    children[i] = start_flow(i, inherits);
    left += children[i] != 0;
  }
  slalom_call(SLALOM_FLOWS, flow_count, 0, 0);
  while (left > 0) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended < 0 && errno != EINTR) return;
    for (int i = 0; i < flow_count; ++i) {
      if (children[i] != ended) continue;
      --left;
      const int record = flows[i].record;
      if (WIFSIGNALED(status))
        fail(record, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
      else if (WEXITSTATUS(status) != 0)
        fail(record, "ended with status %d", WEXITSTATUS(status));
      slalom_call(SLALOM_OUTPUT, SLALOM_ENDED, record, 0);
    }
  }
}

// A process of its own, so that what is prepared for all flows leaves the agent and the check alone.
static void run_flows_with_prepared(void) {
  const pid_t child = fork();
  if (child == 0) {
    close_all();
    int is_one_process = 1;
    for (int i = 0; i < flow_count; ++i)
      is_one_process = is_one_process && flows[i].leader == 0 && flows[i].program[0] == '\0';
    if (is_one_process) pin(0, 0);
    prepare_all(is_one_process);
    if (is_one_process) {
      slalom_call(SLALOM_FLOWS, flow_count, 0, 0);
      run_process(0);
    }
    sleep_first();
    run_flows(1);
    _exit(0);
  }
  const int status = status_of(child);
  if (status != 0) fail(flows[0].record, "ended with status %d", status);
}

void run_test(void) {
  slalom_touch(plan, sizeof plan);
  slalom_touch(threads, sizeof threads);
  const long size =
      slalom_present() ? slalom_call(SLALOM_INPUT, SLALOM_PLAN, (long)plan, sizeof plan - 1) : -1;
  if (size <= 0 || size >= (long)sizeof plan) return;
  write_text("/proc/sys/kernel/printk", "7\n");  // the console must show warnings, too
  const char* check = NULL;
  int prepares_all = 0;
  int record = 1;
  for (char* at = plan; at < plan + size; at += strlen(at) + 1, ++record) {
    char* text = at + 1;
    slalom_call(SLALOM_OUTPUT, SLALOM_PART, record, 0);
    if (*at == 'L') {
      char path[256];
      snprintf(path, sizeof path, "/sys/module/%s", text);
      if (access(path, F_OK) != 0) {
        fail(record, "the kernel did not load the module");
        stop();
      }
    } else if (*at == 'M') {
      static char line[4096];
      snprintf(line, sizeof line, "%s", text);  // load_module() modifies it
      const char* trouble = load_module(line);
      if (trouble != NULL) {
        fail(record, "%s: %s", trouble, strerror(errno));
        stop();
      }
    } else if (*at == 'S') {
      const int status = run(text);
      if (status != 0) {
        fail(record, "ended with status %d", status);
        stop();
      }
    } else if (*at == 'F' && flow_count < MAX_FLOWS) {
      flows[flow_count] = (struct Flow){.program = text, .record = record, .leader = flow_count};
      ++flow_count;
    } else if (*at == 'Q') {
      flows[flow_count - 1].is_prepared = 1;
    } else if (*at == 'T') {
      flows[flow_count - 1].leader = atoi(text);
    } else if (*at == 'A') {
      prepares_all = 1;
    } else if (*at == 'C') {
      check = text;
    }
  }
  slalom_call(SLALOM_OUTPUT, SLALOM_PART, 0, 0);
  // Everything that is not a flow runs on the first CPU without a flow, if there is one.
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (cpus < flow_count) {
    fail(0, "the kernel has brought up only %ld CPUs", cpus);
    stop();
  }
  const int spare = cpus > flow_count ? flow_count : 0;
  pin(0, spare);
  sync();
  pin_kernel_threads(spare);
  const struct Check checker = prepare_check(check);
  sleep_first();
  if (prepares_all)
    run_flows_with_prepared();
  else
    run_flows(0);
  const struct sched_param normal = {.sched_priority = 0};
  sched_setscheduler(0, SCHED_OTHER, &normal);
  slalom_call(SLALOM_CHECKED, run_check(&checker), 0, 0);
  stop();
}
