"""Programs that start processes: slalom reports that it does not control them. Their actions can end a thread's wait, and a wait
for a process lets the other threads run."""

import unittest

from support import ProgramTest

PROLOGUE = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static volatile int handled;
static char stack[65536];
static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER;  // no thread holds it when it is interrupted
static void handle(int s) { pthread_mutex_lock(&of_handler); handled = s; pthread_mutex_unlock(&of_handler); }
static void *worker(void *unused) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); return unused; }
static void *tell(void *unused) { worker(0); write(ends[1], "x", 1); return unused; }
static int end(void *unused) { (void)unused; _exit(0); }
struct shared { pthread_mutex_t lock; pthread_cond_t changed; sem_t posted; int ready, waiting; };
static struct shared *share(void) {
  struct shared *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t m; pthread_mutexattr_init(&m); pthread_mutexattr_setpshared(&m, 1); pthread_mutex_init(&s->lock, &m);
  pthread_condattr_t c; pthread_condattr_init(&c); pthread_condattr_setpshared(&c, 1); pthread_cond_init(&s->changed, &c);
  sem_init(&s->posted, 1, 0);
  return s;
}
int main(void) {
  (void)handle, (void)tell, (void)share, (void)end, (void)stack;
  pid_t own = getpid(), child = 0; int status = 0; char byte; (void)own, (void)child, (void)status, (void)byte;
  pthread_t thread;
  pipe(ends);
  pthread_create(&thread, 0, worker, 0);
"""
EPILOGUE = """
  pthread_join(thread, 0);
  return 0;
}
"""

# In each of these the child is late, so that the threads have nothing else to do.
SERVED_BY_A_CHILD = {
    "pipe": 'if ((child = fork()) == 0) { usleep(20000); write(ends[1], "x", 1); _exit(0); } assert(read(ends[0], &byte, 1) == 1);',
    "sigwait": "pthread_join(thread, 0); sigset_t s; sigemptyset(&s); sigaddset(&s, SIGCHLD); pthread_sigmask(SIG_BLOCK, &s, 0);"
               "pthread_create(&thread, 0, worker, 0);"
               "if (fork() == 0) { usleep(20000); _exit(0); } sigwait(&s, &status); assert(status == SIGCHLD);",
    "sigsuspend": "sigset_t s; sigemptyset(&s); sigaddset(&s, SIGCHLD); pthread_sigmask(SIG_BLOCK, &s, 0); signal(SIGCHLD, handle);"
                  "if (fork() == 0) { usleep(20000); _exit(0); } sigset_t none; sigemptyset(&none);"
                  "while (!handled) sigsuspend(&none);",
    "semaphore": "struct shared *s = share(); if (fork() == 0) { usleep(20000); sem_post(&s->posted); _exit(0); } sem_wait(&s->posted);",
    "condition": "struct shared *s = share(); if (fork() == 0) { usleep(20000); pthread_mutex_lock(&s->lock); s->ready = 1;"
                 "pthread_cond_signal(&s->changed); pthread_mutex_unlock(&s->lock); _exit(0); }"
                 "pthread_mutex_lock(&s->lock); while (!s->ready) pthread_cond_wait(&s->changed, &s->lock); pthread_mutex_unlock(&s->lock);",
    # Here the program serves the child.
    "semaphore of the child": "struct shared *s = share(); if ((child = fork()) == 0) { sem_wait(&s->posted); _exit(0); }"
                              "while (((volatile unsigned *)&s->posted)[1] == 0) syscall(SYS_getppid), usleep(10);"
                              "sem_post(&s->posted); assert(waitpid(child, &status, 0) == child && status == 0);",
}

NAMED = {
    "if ((child = fork()) == 0) _exit(0); waitpid(child, 0, 0);": "forks",
    "if ((child = _Fork()) == 0) _exit(0); waitpid(child, 0, 0);": "forks",
    "if ((child = syscall(SYS_fork)) == 0) _exit(0); wait(0);": "forks",
    "child = clone(end, stack + sizeof stack, SIGCHLD, 0); assert(waitpid(child, 0, 0) == child);": "forks",
    'if (system("true") != 0) return 1;': "starts other programs",
    'FILE *f = popen("echo x", "r"); assert(fgetc(f) == \'x\'); pclose(f);': "starts other programs",
    'char *a[] = {"true", 0}; assert(posix_spawn(&child, "/bin/true", 0, 0, a, environ) == 0); waitpid(child, 0, 0);':
        "starts other programs",
    'execl("/bin/true", "true", (char *)0); return 1;': "starts other programs",
    'char *a[] = {"true", 0}; execvp("true", a); return 1;': "starts other programs",
}


# A child keeps for ever the locks that other threads held at the fork, unless handlers wait for these and release them.
HELD = r"""
#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void take(void) { pthread_mutex_lock(&lock); }
static void give(void) { pthread_mutex_unlock(&lock); }
static void *use(void *unused) {
  take();
  give();
  return unused;
}
int main(void) {
  pthread_t thread;
  int status;
  if (HANDLERS) pthread_atfork(take, give, give);
  pthread_create(&thread, 0, use, 0);
  pid_t child = fork();
  if (child == 0) _exit(pthread_mutex_trylock(&lock) != 0);
  assert(waitpid(child, &status, 0) == child && status == 0);
  pthread_join(thread, 0);
}
"""


# A child signals a condition variable when two threads wait on it.
SIGNALLED = PROLOGUE.split("int main(void)")[0] + r"""
static struct shared *s;
static void *await(void *unused) {
  pthread_mutex_lock(&s->lock);
  ++s->waiting;
  while (!s->ready) pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
  return unused;
}
int main(void) {
  pthread_t a, b;
  s = share();
  (void)handle, (void)tell, (void)end, (void)stack;
  if (fork() == 0) {
    for (int all = 0; !all;) {
      pthread_mutex_lock(&s->lock);
      all = s->waiting == 2;
      s->ready = all;
      pthread_mutex_unlock(&s->lock);
      if (!all) usleep(100);
    }
    BEFORE
    WAKE(&s->changed);
    _exit(0);
  }
  pthread_create(&a, 0, await, 0);
  pthread_create(&b, 0, await, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  wait(0);
}
"""

# The search tries the other threads' operations both before and after a fork.
FORKS = {
    "critical_section": ("pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock);", "pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock);"),
    "twice": ("if (fork() == 0) _exit(0);", "pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock);"),
    "prepared": ("pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock);", "pthread_atfork(take, give, give);"),
}
FORKING = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void take(void) { pthread_mutex_lock(&lock); }
static void give(void) { pthread_mutex_unlock(&lock); }
static void *use(void *unused) { %s return unused; }
int main(void) {
  pthread_t a;
  (void)take, (void)give;
  pthread_create(&a, 0, use, 0);
  %s
  if (fork() == 0) _exit(0);
  pthread_join(a, 0);
}
"""


class Children(ProgramTest):
    def test_locks_that_are_held_at_a_fork(self):
        for handlers in (0, 1):
            program = self.build(HELD, f"held{handlers}", flags=[f"-DHANDLERS={handlers}"])
            for strategy in ("dfs:limit=2", "dpor"):
                result = self.run_json(program, "--strategy", strategy, "--choices", "everywhere")
                self.assertEqual([finding["kind"] for finding in result["findings"]], [] if handlers else ["assertion"])

    def test_dpor_moves_a_fork(self):
        for name, bodies in FORKS.items():
            with self.subTest(name):
                program = self.build(FORKING % bodies, "forks_" + name)
                options = ("--choices", "everywhere", "--keep-going", "--no-shrink", "--out", "")
                every = self.run_json(program, "--strategy", "dfs:bound=none,unfair", *options)
                reduced = self.run_json(program, "--strategy", "dpor", *options)
                for result in (every, reduced):
                    self.assert_finished(result, "uncontrolled")
                self.assertEqual(reduced["classes"], every["classes"])

    def test_a_child_wakes_as_many_as_it_signals(self):
        for wake, expected in (("signal", ["deadlock"]), ("broadcast", [])):
            program = self.build(SIGNALLED, "signalled_" + wake, flags=[f"-DWAKE=pthread_cond_{wake}", "-DBEFORE="])
            result = self.run_json(program, "--schedules", 100)
            self.assertEqual([finding["kind"] for finding in result["findings"]], expected)
            for finding in result["findings"]:
                self.assertEqual(finding["replayed"], "10/10")
                self.assertEqual(finding["detail"].count("(await) (wait)"), 1)  # the other thread was woken

    def test_executions_know_nothing_of_the_children_before(self):
        program = self.build(SIGNALLED, "signalled_again", flags=["-DWAKE=pthread_cond_signal", "-DBEFORE="])
        options = ("--strategy", "random", "--schedules", 20, "--workers", 1, "--keep-going", "--no-shrink", "--out", "")
        shared, apart = (self.run_json(program, *options, *more) for more in ((), ("--from-main",)))
        self.assertEqual(shared["classes"], apart["classes"])

    def test_who_signals_may_not_be_known(self):
        # A program that the child starts could signal it. So a wait ends without a signal, and no false deadlock is reported.
        before = 'if (system("true") != 0) _exit(1);'
        program = self.build(SIGNALLED, "not_known", flags=["-DWAKE=pthread_cond_signal", "-DBEFORE=" + before])
        self.assertEqual(self.run_json(program, "--schedules", 5)["findings"], [])

    def run_body(self, body, schedules=7):
        return self.run_json(self.build(PROLOGUE + body + EPILOGUE), "--schedules", schedules, "--out", "")

    def test_a_child_ends_a_wait(self):
        for name, body in SERVED_BY_A_CHILD.items():
            with self.subTest(name):
                result = self.run_body(body)
                self.assertEqual(result["findings"], [])
                self.assertEqual(result["executions"], 7)

    def test_waiting_for_a_child_is_named(self):
        self.assertIn("a process that it started", " ".join(self.run_body(SERVED_BY_A_CHILD["pipe"])["uncontrolled"]))

    def test_a_deadlock_beside_a_child_is_one(self):
        body = "if (fork() == 0) _exit(0); pthread_mutex_lock(&lock); pthread_mutex_lock(&lock);"
        [finding] = self.run_body(body)["findings"]
        self.assertEqual(finding["kind"], "deadlock")
        self.assertEqual(len(self.run_body("if (fork() == 0) { sleep(1000); _exit(0); }" + body, schedules=1)["findings"]), 1)

    def test_threads_run_while_one_waits_for_a_child(self):
        # The child waits for a thread.
        body = "pthread_t teller; if ((child = fork()) == 0) _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);" \
               "pthread_create(&teller, 0, tell, 0); siginfo_t info;" \
               "assert(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0 && info.si_status == 0);" \
               "assert(waitpid(child, &status, 0) == child && status == 0); assert(wait(0) == -1 && errno == ECHILD);" \
               "pthread_join(teller, 0);"
        result = self.run_body(body, schedules=20)
        self.assertEqual(result["findings"], [])
        self.assertEqual(result["executions"], 20)

    def test_is_named(self):
        for body, words in NAMED.items():
            with self.subTest(body):
                result = self.run_body(body)
                self.assertEqual(result["findings"], [])
                self.assertIn(words, " ".join(result["uncontrolled"]))

    def test_signals_from_outside(self):
        # The handler runs in a thread that has its turn, whichever thread the kernel has interrupted.
        body = "signal(SIGUSR1, handle); if ((child = fork()) == 0) { kill(getppid(), SIGUSR1); _exit(0); }" \
               "while (!handled) usleep(10); waitpid(child, 0, 0);"
        result = self.run_body(body, schedules=30)
        self.assertEqual(result["findings"], [])
        self.assertIn("signals come from outside", " ".join(result["uncontrolled"]))

    def test_handlers_are_told_back(self):
        self.assertEqual(self.run_body("struct sigaction a; signal(SIGUSR1, handle); sigaction(SIGUSR1, 0, &a);"
                                       "assert(a.sa_handler == handle); assert(signal(SIGUSR1, SIG_IGN) == handle);"
                                       "assert(signal(SIGUSR1, SIG_DFL) == SIG_IGN);")["findings"], [])

    def test_process_ids_in_a_child(self):
        body = "if ((child = fork()) == 0) _exit((kill(own, 0) != 0) + 2 * (getppid() != own) + 4 * (getpid() == own));" \
               "waitpid(child, &status, 0); assert(status == 0);" \
               "signal(SIGUSR1, handle); if ((child = fork()) == 0) _exit(kill(own, SIGUSR1) != 0);" \
               "waitpid(child, &status, 0); assert(status == 0); while (handled != SIGUSR1) usleep(10);"
        self.assertEqual(self.run_body(body)["findings"], [])


if __name__ == "__main__":
    unittest.main()
