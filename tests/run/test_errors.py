"""Errors that calls return. A finding that depends on an error still replays after the world around the program has changed. If
a call fails that did not fail in the search, the replay names it."""

import errno
import json
import socket
import unittest

from support import ErrorTest, line_of

# Two threads race, but only if the file is missing.
MISSING = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <fcntl.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int cached;
static int ready(void) {
  pthread_mutex_lock(&lock);
  int value = cached;
  pthread_mutex_unlock(&lock);
  return value;
}
static void *reader(void *unused) {
  %(open)s
  if (!ready()) return unused;
  assert(!"the default is used");
}
static void *writer(void *unused) {
  pthread_mutex_lock(&lock);
  cached = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, reader, 0);
  pthread_create(&b, 0, writer, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"""
# Each of these makes a call that fails, and then reaches the assertion.
OPEN = 'int file = open("config", O_RDONLY); if (file >= 0 || errno != ENOENT) { close(file); return unused; }'
FOPEN = 'FILE *file = fopen("config", "r"); if (file || errno != ENOENT) { if (file) fclose(file); return unused; }'

# The other way round: the race shows only if the file exists.
PRESENT = MISSING % {"open": 'int file = open("config", O_RDONLY); if (file < 0) return unused; close(file);'}

CONNECT = r"""
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **arguments) {
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[count - 1]))};
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  int result = connect(connection, (struct sockaddr *)&server, sizeof server);
  assert(!(result < 0 && errno == ECONNREFUSED));
}
"""

# Both threads look for files. One fails at its first call, the other at its second. Both must happen before the switch that the
# assertion needs.
SEVERAL = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int turns, failed[2];
static void turn(void) {
  pthread_mutex_lock(&lock);
  turns++;
  pthread_mutex_unlock(&lock);
}
static void *first(void *unused) {
  struct stat info;
  failed[0] += stat("gone", &info) < 0 && errno == ENOENT;
  turn();
  failed[0] += access("/", F_OK) < 0;
  pthread_mutex_lock(&lock);
  int before = turns;
  pthread_mutex_unlock(&lock);
  turn();
  pthread_mutex_lock(&lock);
  assert(!(turns > before + 1 && failed[0] == 1 && failed[1] == 2));
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *second(void *unused) {
  failed[1] += access("/", F_OK) < 0;
  failed[1] += unlink("gone") < 0 && errno == ENOENT;
  failed[1] += rmdir("gone") < 0 && errno == ENOENT;
  turn();
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, first, 0);
  pthread_create(&b, 0, second, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"""

# The schedule decides whether the call fails, because another thread makes the file.
OWN_FILE = r"""
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void pass(void) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
}
static void *maker(void *unused) {
  pass();
  close(open("made", O_CREAT | O_WRONLY, 0600));
  pass();
  return unused;
}
static void *user(void *unused) {
  pass();
  assert(access("made", F_OK) == 0);
  pass();
  return unused;
}
int main(void) {
  unlink("made");
  pthread_t a, b;
  pthread_create(&a, 0, maker, 0);
  pthread_create(&b, 0, user, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"""

# The thread's calls depend on the schedule, and only one of them fails.
ANOTHER_CALL = r"""
#include <assert.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int looks;
static void *user(void *unused) {
  struct stat info;
  pthread_mutex_lock(&lock);
  const int now = looks;
  pthread_mutex_unlock(&lock);
  const int failed = now ? stat("own", &info) : mkdir("own", 0700);
  assert(!failed);
  rmdir("own");
  return unused;
}
static void *decide(void *unused) {
  pthread_mutex_lock(&lock);
  looks = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, user, 0);
  pthread_create(&b, 0, decide, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"""

# A signal comes with the error.
BROKEN_PIPE = r"""
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
static volatile int came;
static void on(int number) { came = number; }
int main(int count, char **arguments) {
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[count - 1]))};
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  signal(SIGPIPE, on);
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(connection, (struct sockaddr *)&server, sizeof server) != 0) return 0;
  shutdown(connection, SHUT_WR);
  const long written = write(connection, "x", 1);
  assert(!(written < 0 && errno == EPIPE && came == SIGPIPE));
}
"""

# Fails in all executions but the first, because the first one leaves a directory behind.
LEAVES_TRACES = r"""
#include <assert.h>
#include <sys/stat.h>
int main(void) {
  assert(mkdir("trace", 0700) == 0);
}
"""

# Fails only in the first execution of all, under any schedule.
ONLY_ONCE = r"""
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *pass(void *unused) {
  for (int i = 0; i < 4; ++i) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}
int main(void) {
  int first = access("mark", F_OK) != 0;
  if (first) close(creat("mark", 0600));
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], 0, pass, 0);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
  assert(!first);
}
"""

# The other way round: the call succeeds only in the first execution.
NEVER_AGAIN = r"""
#include <assert.h>
#include <sys/stat.h>
int main(void) {
  assert(mkdir("again", 0700) != 0);
}
"""

# Every second execution removes the directory that the execution before it made.
TAKES_TURNS = r"""
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
  if (mkdir("turn", 0700)) rmdir("turn");
}
"""

MANY = r"""
#include <assert.h>
#include <unistd.h>
int main(void) {
  int failed = 0;
  for (int i = 0; i < 5000; ++i) failed += access("gone", F_OK) != 0;
  assert(failed < 5000);
}
"""


class Errors(ErrorTest):
    def check_missing(self, name, call):
        finding = self.find(MISSING % {"open": call}, name)
        self.assertIn("the default is used", finding["title"])
        self.assertEqual(finding["minimality"], "minimum")
        config = self.folder / "config"
        config.touch()
        try:
            self.replay(finding, same=True)
            # Without the errors in the capsule the finding would not show.
            self.slalom("run", "--out", "none", "--", self.folder / name, codes=(0,))
        finally:
            config.unlink()

    def test_open_of_a_file_that_is_there_now(self):
        self.check_missing("opens", OPEN)

    def test_fopen_of_a_file_that_is_there_now(self):
        self.check_missing("fopens", FOPEN)

    def test_a_server_that_listens_now(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))  # no other process gets the port; without listen() it refuses connections
            finding = self.find(CONNECT, "connects", server.getsockname()[1])
            self.assertIn(("connect", errno.ECONNREFUSED), [(one["call"], one["error"]) for one in finding["schedule"]["errors"]])
            server.listen()
            self.replay(finding, same=True)
            server.settimeout(0)
            self.assertRaises(BlockingIOError, server.accept)  # the call was not made

    def test_a_server_that_listens_no_more(self):
        text = CONNECT.replace("assert(!(result < 0 && errno == ECONNREFUSED))", "assert(result < 0)")
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen(100)
            port = server.getsockname()[1]
            finding = self.find(text, "connected", port)
        self.assertEqual(self.replay(finding, same=False)["differences"],
                         [f'connect("127.0.0.1:{port}") in main at connected.c:{line_of(text, "connect(connection")} (main) fails with '
                          "ECONNREFUSED, which it did not then"])

    def test_a_call_that_fails_only_now_is_named(self):
        config = self.folder / "config"
        config.touch()
        try:
            finding = self.find(PRESENT, "present")
            self.assertNotIn("errors", finding["schedule"])
            self.replay(finding, same=True)
        finally:
            config.unlink()
        line = line_of(PRESENT, "open(")
        expected = f'open("config") in reader#1 at present.c:{line} (reader) fails with ENOENT, which it did not then'
        self.assertEqual(self.replay(finding, same=False)["differences"], [expected])
        text = self.slalom("replay", finding["capsule"], codes=(0,)).stdout
        self.assertIn("differs: " + expected, " ".join(text.split()))

    def test_each_thread_has_its_own(self):
        finding = self.find(SEVERAL, "several")
        kept = [(one["agent"], one["ordinal"], one["call"], one["about"], one["error"]) for one in finding["schedule"]["errors"]]
        self.assertEqual([one[1:] for one in kept],
                         [(0, "stat", "gone", errno.ENOENT), (1, "unlink", "gone", errno.ENOENT), (2, "rmdir", "gone", errno.ENOENT)])
        self.assertNotEqual(kept[0][0], kept[1][0])
        self.assertEqual(kept[1][0], kept[2][0])
        gone = self.folder / "gone"
        gone.touch()
        try:
            for options in [], ["--original"], ["--choices", "everywhere"]:
                self.assertIn("the same", self.slalom("replay", *options, finding["capsule"], codes=(1,)).stdout)
            self.assertTrue(gone.exists())  # no execution has really removed it
        finally:
            gone.unlink()

    def test_an_error_that_the_schedule_decides(self):
        # Otherwise, shrinking would also return the error after the other thread has made the file, and need no switch.
        finding = self.find(OWN_FILE, "owns")
        maker, user = "1.1", "1.2"
        ran = [change["to"] for change in finding["schedule"]["switches"]]
        self.assertIn(user, ran)
        self.assertNotIn(maker, ran[:ran.index(user)], ran)
        self.replay(finding, same=True)

    def test_an_error_of_another_call(self):
        # Given to mkdir(), the error would show the bug without any switch.
        finding = self.find(ANOTHER_CALL, "another")
        self.assertEqual([one["call"] for one in finding["schedule"]["errors"]], ["stat"])
        self.replay(finding, same=True)

    def test_a_broken_pipe_comes_with_its_signal(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen(100)
            finding = self.find(BROKEN_PIPE, "broken", server.getsockname()[1])
            self.assertNotIn("errors", finding["schedule"])
            self.replay(finding, same=True)

    def test_what_executions_leave_behind(self):
        finding = self.find(LEAVES_TRACES, "leaves")
        self.assertEqual(finding["execution"], 1)
        (self.folder / "trace").rmdir()
        self.replay(finding, same=True)
        self.assertFalse((self.folder / "trace").exists())

    def test_shrinking_where_the_world_has_changed(self):
        program = self.build(ONLY_ONCE, name="once")
        result = self.run_json(program, "--strategy", "random", "--seed", 1, "--workers", 1, "--out", "once-found")
        [finding] = result["findings"]
        self.assertEqual((finding["execution"], finding["occurrences"], finding["minimality"]), (0, 1, "minimum"))
        # Each thread runs in one piece.
        ran = [change["to"] for change in finding["schedule"]["switches"]]
        self.assertEqual(ran, ["1", "1.1", "1.2", "1.3", "1"])
        original = json.loads(self.slalom("replay", "--json", "--original", finding["capsule"], codes=(1,)).stdout)
        self.assertGreater(len(original["schedule"]["switches"]), len(ran))

    def test_the_search_names_a_call_that_fails_only_later(self):
        program = self.build(NEVER_AGAIN, name="never")
        text = " ".join(self.slalom("run", "--out", "never-found", "--", program, codes=(1,)).stdout.split())
        self.assertIn("Replayed only 0/10", text)
        line = line_of(NEVER_AGAIN, "mkdir(")
        self.assertIn(f'differs: mkdir("again") in main at never.c:{line} (main) fails with EEXIST, which it did not then', text)

    def test_run_twice_names_the_call(self):
        program = self.build(TAKES_TURNS, name="turns")
        text = self.slalom("run", "--run-twice", "--schedules", 1, "--", program, codes=(0, 2))
        line = line_of(TAKES_TURNS, "mkdir(")
        self.assertIn(f'mkdir("turn") in main at turns.c:{line} (main) fails with EEXIST, which it did not then',
                      " ".join((text.stdout + text.stderr).split()))

    def test_too_many(self):
        program = self.build(MANY, name="many")
        text = self.slalom("run", "--out", "many-found", "--", program, codes=(1,))
        self.assertIn("more calls failed in one execution than are kept", " ".join((text.stdout + text.stderr).split()))
        [capsule] = self.folder.glob("many-found/*/capsule.slalom")
        gone = self.folder / "gone"
        gone.touch()
        try:
            result = json.loads(self.slalom("replay", "--json", capsule, codes=(0,)).stdout)
        finally:
            gone.unlink()
        self.assertIn("904 errors that calls gave then were too many to be kept", result["differences"])


if __name__ == "__main__":
    unittest.main()
