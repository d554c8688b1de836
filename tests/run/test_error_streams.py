"""Errors that libc meets in streams, errors of close(), of locks that another program holds, and of non-blocking connections:
they are kept with a finding and come again in its replays."""

import errno
import fcntl
import socket
import subprocess
import unittest

from support import ErrorTest

# The device behind the name has no room. Each line fails at one call, and the data that was not written is lost.
WRITES = r"""
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
static char big[BUFSIZ * 2];
static FILE *buffered(void) { return fopen("device", "w"); }
static FILE *unbuffered(void) {
  FILE *file = fopen("device", "w");
  setvbuf(file, 0, _IONBF, 0);
  return file;
}
int main(void) {
  FILE *file;
  int failed = 0;
  memset(big, 'x', sizeof big);
  file = buffered(), fputs("x", file), failed += fflush(file) == EOF && errno == ENOSPC && ferror(file), failed += fclose(file) == 0;
  file = buffered(), fputs("x", file), failed += fclose(file) == EOF && errno == ENOSPC;
  file = unbuffered(), failed += fputs("xy", file) == EOF && errno == ENOSPC && ferror(file), failed += fclose(file) == 0;
  file = unbuffered(), failed += fwrite("xy", 2, 1, file) == 0 && errno == ENOSPC;
  clearerr(file), failed += fputc('x', file) == EOF && ferror(file);
  failed += fprintf(file, "%d", 1) == -1 && errno == ENOSPC;
  file = buffered(), fputs("x", file), failed += fseek(file, 0, SEEK_SET) == -1 && errno == ENOSPC;
  assert(failed != 9);
}
"""
WRITE_CALLS = ["fflush", "fclose", "fputs", "fwrite", "fputc", "fprintf", "fseek"]

# A folder can be opened, but not read.
READS = r"""
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  FILE *file = fopen("thing", "r");
  char text[8], *line = 0;
  size_t size = 0;
  int failed = 0;
  failed += fread(text, 1, 8, file) == 0 && ferror(file) && errno == EISDIR;
  failed += fgets(text, 8, file) == 0 && errno == EISDIR;
  failed += fgetc(file) == EOF && errno == EISDIR;
  failed += getline(&line, &size, file) == -1 && errno == EISDIR;
  failed += fscanf(file, "%7s", text) == EOF && errno == EISDIR;
  assert(failed != 5);
}
"""
READ_CALLS = ["fread", "fgets", "fgetc", "getline", "fscanf"]
# The end of a file is no error, whatever flags the stream has; nor is closing a descriptor that is not open.
END_OF_FILE = r"""
#include <assert.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE *file = fopen("thing", "r");
  close(1000);
  fwrite("xy", 1, 2, file);
  assert(!ferror(file) || fgetc(file) != EOF);
}
"""

LOCKS = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
int main(void) {
  int whole = open("whole", O_RDWR), ranges = open("ranges", O_RDWR), failed = 0;
  struct flock range = {.l_type = F_WRLCK};
  failed += flock(whole, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
  failed += fcntl(ranges, F_SETLK, &range) < 0 && errno == EAGAIN;
  failed += fcntl(ranges, F_OFD_SETLK, &range) < 0 && errno == EAGAIN;
  failed += lockf(ranges, F_TLOCK, 0) < 0 && errno == EAGAIN;
  failed += lockf(ranges, F_TEST, 0) < 0 && errno == EACCES;
  assert(failed != 5);
}
"""
# The program itself holds the lock that is not available.
OWN_LOCK = r"""
#include <assert.h>
#include <fcntl.h>
#include <sys/file.h>
int main(void) {
  flock(open("whole", O_RDWR), LOCK_EX);
  assert(flock(open("whole", O_RDWR), LOCK_EX | LOCK_NB) == 0);
}
"""

# A disk that reports a write error only at close: a library of the program simulates it, for one device.
DISK = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
int close(int file) {
  struct stat info;
  const int full = fstat(file, &info) == 0 && S_ISCHR(info.st_mode) && minor(info.st_rdev) == 7;
  const int result = close_range(file, file, 0);
  return full ? (errno = EIO, -1) : result;
}
"""
CLOSES = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  const int file = open("device", O_WRONLY);
  const int failed = close(file) < 0 && errno == EIO;
  assert(open("device", O_WRONLY) == file); /* it was closed */
  assert(!failed);
}
"""

CONNECTS = r"""
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
int main(int count, char **arguments) {
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[count - 1]))};
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct pollfd wanted = {socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), POLLOUT, 0};
  int result = connect(wanted.fd, (struct sockaddr *)&server, sizeof server), error = 0;
  assert(result == 0 || errno == EINPROGRESS);
  poll(&wanted, 1, -1);
  socklen_t size = sizeof error;
  assert(getsockopt(wanted.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  assert(error != ECONNREFUSED);
}
"""


class ErrorStreams(ErrorTest):
    def kept(self, finding):
        return [(one["call"], one["error"]) for one in finding["schedule"].get("errors", [])]

    def check_device(self, text, name, calls, error, **building):
        device = self.folder / "device"
        device.symlink_to("/dev/full")
        try:
            finding = self.find(text, name, **building)
            self.assertEqual(self.kept(finding), [(call, error) for call in calls])
            device.unlink()
            device.symlink_to("/dev/null")
            self.replay(finding, same=True)
        finally:
            device.unlink()

    def test_a_full_disk(self):
        self.check_device(WRITES, "writes", WRITE_CALLS, errno.ENOSPC)
        self.check_device(WRITES, "writes_fortified", WRITE_CALLS, errno.ENOSPC, flags=["-O2", "-D_FORTIFY_SOURCE=2"])

    def test_what_is_not_written_then_is_not_written_now(self):
        device = self.folder / "device"
        device.symlink_to("/dev/full")
        finding = self.find(WRITES, "drops")
        device.unlink()
        device.touch()
        self.replay(finding, same=True)
        self.assertEqual(device.read_text(), "")
        device.unlink()

    def test_a_folder_is_no_file(self):
        thing = self.folder / "thing"
        thing.mkdir()
        finding = self.find(READS, "reads")
        self.assertEqual(self.kept(finding), [(call, errno.EISDIR) for call in READ_CALLS])
        thing.rmdir()
        thing.write_text("some text\n")
        self.replay(finding, same=True)
        thing.write_text("")
        self.assertEqual(self.kept(self.find(END_OF_FILE, "ends")), [("fwrite", errno.EBADF)])
        thing.unlink()

    def test_locks_of_another_program(self):
        with open(self.folder / "whole", "w") as whole, open(self.folder / "ranges", "w") as ranges:
            fcntl.flock(whole, fcntl.LOCK_EX)
            fcntl.lockf(ranges, fcntl.LOCK_EX)
            finding = self.find(LOCKS, "locks")
            self.assertEqual(self.kept(finding), [(call, errno.EAGAIN) for call in ("flock", "fcntl", "fcntl", "lockf")] + [("lockf", errno.EACCES)])
        self.replay(finding, same=True)
        program = self.build(OWN_LOCK, "own")
        [finding] = self.run_json(program, "--workers", 1, "--out", "own-found")["findings"]
        self.assertEqual(self.kept(finding), [])
        self.replay(finding, same=True)

    def test_close(self):
        library = self.folder / "libdisk.so"
        source = self.folder / "disk.c"
        source.write_text(DISK)
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
        self.check_device(CLOSES, "closes", ["close"], errno.EIO,
                          flags=["-Wl,--no-as-needed", f"-L{self.folder}", "-ldisk", f"-Wl,-rpath,{self.folder}"])

    def test_a_connection_that_is_made_without_waiting(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))  # without listen() the port refuses connections
            finding = self.find(CONNECTS, "connects", server.getsockname()[1])
            self.assertEqual(self.kept(finding), [("getsockopt", errno.ECONNREFUSED)])
            server.listen()
            self.replay(finding, same=True)


if __name__ == "__main__":
    unittest.main()
