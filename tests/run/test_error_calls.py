"""The calls whose errors are kept with a finding and come again in its replays: each call, under all its names."""

import errno
import socket
import unittest

from support import ErrorTest

# Every call fails if "file", "folder" and "link" are missing, and would succeed if they existed. By the names in capsules.
CALLS = {
    "open": 'open("file", O_RDONLY) < 0',
    "openat": 'openat(AT_FDCWD, "file", O_RDONLY) < 0',
    "creat": 'creat("folder/new", 0600) < 0',
    "fopen": '!fopen("file", "r")',
    "freopen": '!freopen("file", "r", stdin)',
    "opendir": '!opendir("folder")',
    "stat": 'stat("file", &info) < 0',
    "lstat": 'lstat("file", &info) < 0',
    "fstatat": 'fstatat(AT_FDCWD, "file", &info, 0) < 0',
    "statx": 'statx(AT_FDCWD, "file", 0, STATX_SIZE, &more) < 0',
    "access": 'access("file", R_OK) < 0',
    "faccessat": 'faccessat(AT_FDCWD, "file", R_OK, 0) < 0',
    "readlink": 'readlink("link", text, sizeof text) < 0',
    "realpath": '!realpath("file", text)',
    "mkdir": 'mkdir("folder/new", 0700) < 0',
    "chmod": 'chmod("file", 0600) < 0',
    "truncate": 'truncate("file", 1) < 0',
    "rename": 'rename("file", "other") < 0',
    "link": 'link("file", "other") < 0',
    "symlink": 'symlink("file", "folder/new") < 0',
    "unlink": 'unlink("file") < 0',
    "remove": 'remove("file") < 0',
    "rmdir": 'rmdir("folder") < 0',
    "mkstemp": 'mkstemp(strcpy(text, "folder/XXXXXX")) < 0',
    "shm_open": 'shm_open("/slalom-test-none", O_RDONLY, 0) < 0',
    "statvfs": 'statvfs("file", &system_info) < 0',
    "syscall": 'syscall(SYS_openat, AT_FDCWD, "file", O_RDONLY) < 0',
    "chdir": 'chdir("folder") < 0',
}
ALL_CALLS = r"""
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  struct stat info;
  struct statx more;
  struct statvfs system_info;
  char text[PATH_MAX];
  int failed = 0;
""" + "".join(f"  failed += ({call}) && errno == ENOENT;\n" for call in CALLS.values()) + f"""
  assert(failed != {len(CALLS)});
}}
"""

# Calls on open descriptors: the device behind the name decides whether they fail.
WRITES = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void) {
  int device = open("device", O_WRONLY), failed = 0;
  struct iovec part = {"x", 1};
  assert(device >= 0);
  failed += write(device, "x", 1) < 0 && errno == ENOSPC;
  failed += pwrite(device, "x", 1, 0) < 0 && errno == ENOSPC;
  failed += writev(device, &part, 1) < 0 && errno == ENOSPC;
  assert(failed != 3);
}
"""

NETWORK = r"""
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
int main(int count, char **arguments) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[count - 1]))};
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int server = socket(AF_INET, SOCK_STREAM, 0);
  int failed = bind(server, (struct sockaddr *)&here, sizeof here) < 0 && errno == EADDRINUSE;
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found;
  failed += getaddrinfo("no number", 0, &hints, &found) == EAI_NONAME;
  assert(failed != 2);
}
"""

STREAM = r"""
#include <cassert>
#include <filesystem>
#include <fstream>
int main() {
  std::ifstream file("file");
  assert(file || std::filesystem::exists("folder"));
}
"""


class ErrorCalls(ErrorTest):
    def make_world(self):
        (self.folder / "file").touch()
        (self.folder / "folder").mkdir()
        (self.folder / "link").symlink_to("file")

    def unmake_world(self):
        (self.folder / "link").unlink()
        (self.folder / "folder").rmdir()
        (self.folder / "file").unlink()

    def check_world(self, finding, calls):
        """The calls are in the capsule, and a replay makes none of them."""
        self.assertEqual([one["call"] for one in finding["schedule"]["errors"]], calls)
        self.make_world()
        self.replay(finding, same=True)
        self.assertEqual(list((self.folder / "folder").iterdir()), [])
        self.unmake_world()  # so all files still existed

    def test_all_calls(self):
        self.check_world(self.find(ALL_CALLS, "calls"), list(CALLS))

    def test_all_calls_by_their_other_names(self):
        for name, flags in ("large", ["-D_FILE_OFFSET_BITS=64"]), ("fortified", ["-O2", "-D_FORTIFY_SOURCE=2"]), ("instrumented", ["-fsanitize=thread"]):
            with self.subTest(name):
                self.check_world(self.find(ALL_CALLS, name, flags=flags), list(CALLS))

    def test_calls_of_the_cpp_library(self):
        finding = self.find(STREAM, "streams", suffix=".cc")
        self.assertEqual([one["about"] for one in finding["schedule"]["errors"]], ["file", "folder"])
        self.check_world(finding, [one["call"] for one in finding["schedule"]["errors"]])

    def test_a_full_disk(self):
        device = self.folder / "device"
        device.symlink_to("/dev/full")
        finding = self.find(WRITES, "writes")
        self.assertEqual([(one["call"], one["error"]) for one in finding["schedule"]["errors"]],
                         [(call, errno.ENOSPC) for call in ("write", "pwrite", "writev")])
        device.unlink()
        device.symlink_to("/dev/null")
        self.replay(finding, same=True)

    def test_the_network(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            finding = self.find(NETWORK, "network", server.getsockname()[1])
        self.assertEqual([(one["call"], one["error"]) for one in finding["schedule"]["errors"]],
                         [("bind", errno.EADDRINUSE), ("getaddrinfo", socket.EAI_NONAME)])
        self.replay(finding, same=True)  # where the port is free


if __name__ == "__main__":
    unittest.main()
