"""Calls that wait in the kernel for another thread: System V semaphores and queues, message queues, named pipes, locks of files
and streams. Each is in a correct program, all of whose interleavings are executed, and in one with a bug."""

import subprocess
import unittest

from support import ProgramTest

# The operation of main() that a thread waits for; main() omits it with BUG.
WAITS = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int queue, other, ends[2], ends2[2];
static struct { long type; char text[8]; } message = {1, "hello"}, got;
static char bytes[64], page[4096] __attribute__((aligned(4096))), big[1 << 20];
static int filled;
static FILE *stream;
static struct iovec piece = {page, sizeof page};
static int drain(int want) {
  int all = 0;
  for (int got = 1; all < want && got > 0; all += got) got = read(ends[0], big, sizeof big);
  return all;
}
static struct timespec in(int seconds) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec += seconds;
  return time;
}
static void handle(int number) { (void)number; }
static void *thread_function(void *unused) {
  @THREAD@; /* the wait */
  return unused;
}
int main(void) {
  (void)in, (void)handle, (void)drain, (void)piece, (void)stream;
  @BEFORE@;
  pthread_t thread;
  pthread_create(&thread, 0, thread_function, 0);
  if (!BUG) { @MAIN@; }
  pthread_join(thread, 0);
  @AFTER@;
  return 0;
}
"""
QUEUE = "queue = msgget(IPC_PRIVATE, 0600)"
MQ = 'struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8}; queue = mq_open("/slalom-test", O_RDWR | O_CREAT | O_EXCL, 0600, &a); assert(queue >= 0)'
FIFO = 'unlink("fifo"); assert(mkfifo("fifo", 0600) == 0)'
PIPES = "assert(pipe(ends) == 0 && pipe(ends2) == 0)"
SOCKETS = "assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0)"
# Pipes of one page, which is full; a file of two pages.
FULL = PIPES + "; fcntl(ends[1], F_SETPIPE_SZ, 4096); assert(write(ends[1], page, 4096) == 4096)"
FILE = 'queue = open("f", O_RDWR | O_CREAT, 0600); assert(write(queue, big, 8192) == 8192); lseek(queue, 0, SEEK_SET)'
FULL_SOCKETS = SOCKETS + "; int small = 1; setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small); for (int n; (n = send(ends[1], page, 4096, MSG_DONTWAIT)) > 0;) filled += n"
SEMAPHORE = "queue = semget(IPC_PRIVATE, 1, 0600)"
# Code before, in the thread, in main, and after.
WAIT_KINDS = {
    "msgrcv": (QUEUE, 'assert(msgrcv(queue, &got, 8, 0, 0) == 6 && !strcmp(got.text, "hello"))', "assert(msgsnd(queue, &message, 6, 0) == 0)", ""),
    "msgrcv of a type": (QUEUE + "; msgsnd(queue, &message, 6, 0); message.type = 2", "assert(msgrcv(queue, &got, 8, 2, 0) == 6 && got.type == 2)",
                         "assert(msgsnd(queue, &message, 6, 0) == 0)", ""),
    "msgsnd": (QUEUE + "; struct msqid_ds q; msgctl(queue, IPC_STAT, &q); q.msg_qbytes = 8; msgctl(queue, IPC_SET, &q); msgsnd(queue, &message, 6, 0)",
               "assert(msgsnd(queue, &message, 6, 0) == 0)", "assert(msgrcv(queue, &got, 8, 0, 0) == 6)", ""),
    "removal": (QUEUE, "assert(msgrcv(queue, &got, 8, 0, 0) == -1 && (errno == EIDRM || errno == EINVAL))", "msgctl(queue, IPC_RMID, 0)", ""),
    "semop for zero": (SEMAPHORE + "; semctl(queue, 0, SETVAL, 1)", "struct sembuf o = {0, 0, 0}; assert(semop(queue, &o, 1) == 0)",
                       "semctl(queue, 0, SETVAL, 0)", ""),
    "mq_receive": (MQ, 'assert(mq_receive(queue, bytes, 8, 0) == 6 && !strcmp(bytes, "hello"))', 'assert(mq_send(queue, "hello", 6, 0) == 0)', ""),
    "mq_send": (MQ + '; mq_send(queue, "full", 5, 0)', 'assert(mq_send(queue, "hello", 6, 0) == 0)', "assert(mq_receive(queue, bytes, 8, 0) == 5)", ""),
    "opening a FIFO": (FIFO, 'int f = open("fifo", O_RDONLY); assert(f >= 0 && read(f, bytes, 8) == 2)',
                       'int f = open("fifo", O_WRONLY); assert(f >= 0 && write(f, "xy", 2) == 2)', ""),
    "opening a FIFO to write": (FIFO, 'int f = open("fifo", O_WRONLY); assert(f >= 0 && (fcntl(f, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_WRONLY && write(f, "xy", 2) == 2)',
         'int f = open("fifo", O_RDONLY); assert(f >= 0 && read(f, bytes, 8) == 2)', ""),
    "fopen of a FIFO": (FIFO, 'FILE *f = fopen("fifo", "r"); assert(f && fgets(bytes, 8, f) && !strcmp(bytes, "line\\n")); fclose(f)',
                        'FILE *f = fopen("fifo", "w"); assert(f); fprintf(f, "line\\n"); fclose(f)', ""),
    "splice": (PIPES, "assert(splice(ends[0], 0, ends2[1], 0, 8, 0) == 2)", 'assert(write(ends[1], "xy", 2) == 2)', "assert(read(ends2[0], bytes, 8) == 2)"),
    "tee": (PIPES, "assert(tee(ends[0], ends2[1], 8, 0) == 2)", 'assert(write(ends[1], "xy", 2) == 2)', "assert(read(ends[0], bytes, 8) == 2)"),
    "vmsplice": (FULL, "assert(vmsplice(ends[1], &piece, 1, 0) == 4096)", "assert(drain(4096) == 4096)", "assert(drain(4096) == 4096)"),
    "vmsplice out of a pipe": (PIPES, "assert(vmsplice(ends[0], &piece, 1, 0) == 2)", 'assert(write(ends[1], "xy", 2) == 2)', "assert(page[1] == 'y')"),
    "sendfile to a pipe": (f"{FULL}; {FILE}", "assert(sendfile(ends[1], queue, 0, 8192) == 4096)", "assert(drain(4096) == 4096)",
                           "assert(drain(4096) == 4096 && lseek(queue, 0, SEEK_CUR) == 4096 && (fcntl(ends[1], F_GETFL) & O_NONBLOCK) == 0)"),
    "sendfile to a socket": (f"{FULL_SOCKETS}; {FILE}", "off_t at = 1; assert(sendfile(ends[1], queue, &at, 8191) == 8191 && at == 8192)",
                             "assert(drain(filled + 8191) == filled + 8191)", ""),
    "sendfile by its number": (f"{FULL}; {FILE}", "assert(syscall(SYS_sendfile, ends[1], queue, 0, 100) == 100)", "assert(drain(4096) == 4096)", ""),
    "recvmsg of all": (SOCKETS, "struct iovec p[2] = {{bytes, 3}, {bytes + 8, 2}}; struct msghdr m = {.msg_iov = p, .msg_iovlen = 2};"
                       'assert(recvmsg(ends[0], &m, MSG_WAITALL) == 5 && !memcmp(bytes, "abc", 3) && !memcmp(bytes + 8, "de", 2))',
                       'assert(write(ends[1], "ab", 2) == 2); assert(write(ends[1], "cde", 3) == 3)', ""),
    "a shared lock": ('queue = open("f", O_RDWR | O_CREAT, 0600); other = open("f", O_RDWR); flock(queue, LOCK_SH)', "assert(flock(other, LOCK_EX) == 0)",
                      "assert(flock(queue, LOCK_UN) == 0)", ""),
    "fseek of a locked stream": ('stream = tmpfile(); flockfile(stream)', 'assert(fseek(stream, 1, SEEK_SET) == 0 && ftell(stream) == 1 && !feof(stream)); rewind(stream)',
                                 "funlockfile(stream)", ""),
    "fscanf of a locked stream": ('stream = tmpfile(); fputs("12", stream); rewind(stream); flockfile(stream)',
                                  "int n = 0; assert(fscanf(stream, \"%d\", &n) == 1 && n == 12)", "funlockfile(stream)", ""),
    "printf to a locked stream": ('flockfile(stderr)', 'fprintf(stderr, "x\\n")', "funlockfile(stderr)", ""),
}

# Limits are in virtual time, so an hour may pass or not.
LIMITED = {
    "semtimedop": (SEMAPHORE, "struct sembuf o = {0, -1, 0}; struct timespec t = {3600, 0}; got.type = semtimedop(queue, &o, 1, &t); assert(got.type == 0 || errno == EAGAIN)",
                   "struct sembuf o = {0, 1, 0}; semop(queue, &o, 1)", ""),
    "mq_timedreceive": (MQ, "struct timespec t = in(3600); assert(mq_timedreceive(queue, bytes, 8, 0, &t) == 6 || errno == ETIMEDOUT)",
                        'assert(mq_send(queue, "hello", 6, 0) == 0)', ""),
    "mq_timedsend": (MQ + '; mq_send(queue, "full", 5, 0)', 'struct timespec t = in(3600); assert(mq_timedsend(queue, "hello", 6, 0, &t) == 0 || errno == ETIMEDOUT)',
                     "assert(mq_receive(queue, bytes, 8, 0) == 5)", ""),
}


class KernelWaits(ProgramTest):
    def build_wait(self, parts, bug):
        text = WAITS
        for word, code in zip(("@BEFORE@", "@THREAD@", "@MAIN@", "@AFTER@"), parts):
            text = text.replace(word, code)
        return self.build(text, flags=[f"-DBUG={bug}"])

    def test_other_threads_end_the_wait(self):
        for name, parts in WAIT_KINDS.items():
            with self.subTest(name):
                self.exhausts(self.build_wait(parts, 0))
                finding = self.deadlocks(self.build_wait(parts, 1))
                self.assertIn("thread_function", finding["title"])

    def test_limits(self):
        for name, parts in LIMITED.items():
            with self.subTest(name):
                self.exhausts(self.build_wait(parts, 0))
                # The other side never comes, so the time runs out.
                self.exhausts(self.build_wait(parts, 1))
                # In some executions it comes in time.
                fails = (parts[0], parts[1].split("|| errno")[0] + ")", *parts[2:])
                found = self.run_json(self.build_wait(fails, 0), "--strategy", "dfs", "--out", "", *self.fresh())
                self.assertEqual([finding["kind"] for finding in found["findings"]], ["assertion"])

    def test_other_processes(self):
        # A child holds the lock: slalom waits for it, and reports that.
        held = ('if (fork() == 0) { flock(open("f", O_RDWR | O_CREAT, 0600), LOCK_EX); close(ends[1]); usleep(50000); _exit(0); }'
                "close(ends[1]); read(ends[0], bytes, 1)")
        program = self.build_wait((f"pipe(ends); {held}", 'assert(flock(open("f", O_RDWR), LOCK_EX) == 0)', "", "wait(0)"), 0)
        result = self.run_json(program, "--schedules", 3, "--out", "", *self.fresh())
        self.assertEqual(result["findings"], [])
        self.assertGreaterEqual(result["executions"], 1)

    def test_handlers_end_the_wait(self):
        before = f"{SEMAPHORE}; struct sigaction s = {{.sa_handler = handle}}; sigaction(SIGUSR1, &s, 0)"
        program = self.build_wait((before, "struct sembuf o = {0, -1, 0}; assert(semop(queue, &o, 1) == -1 && errno == EINTR)",
                                   "pthread_kill(thread, SIGUSR1)", ""), 0)
        self.exhausts(program)

    def test_an_assertion_while_a_stream_is_locked(self):
        program = self.build_wait(("flockfile(stderr)", "assert(!\"fails\")".replace("\\", ""), "", ""), 0)
        [finding] = self.run_json(program, "--schedules", 3, "--out", "", *self.fresh())["findings"]
        self.assertEqual(finding["kind"], "assertion")

    def test_nothing_is_left_behind(self):
        def ids():
            return subprocess.run(["ipcs", "-s", "-q"], capture_output=True, text=True, check=True).stdout
        before = ids()
        self.deadlocks(self.build_wait(WAIT_KINDS["msgrcv"], 1))
        self.deadlocks(self.build_wait(WAIT_KINDS["semop for zero"], 1))
        self.assertEqual(ids(), before)


if __name__ == "__main__":
    unittest.main()
