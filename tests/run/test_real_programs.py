"""Programs of other projects, as Debian ships them: they run to their end under many schedules, and do their work."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest

from support import ProgramTest

# The command to run, its input, how to turn its result back into the input, and the minimum number of choice points of an
# execution.
SMALL, LARGE = 30_000, 300_000  # lines
PROGRAMS = {
    "xz": (["xz", "-0", "-T2", "--block-size=16KiB", "-k", "-f", "input"], SMALL, ["xz", "-dc", "input.xz"]),
    "zstd": (["zstd", "-q", "-T2", "-B512K", "--fast=3", "-f", "input"], LARGE, ["zstd", "-q", "-dc", "input.zst"]),
    "pigz": (["pigz", "-p", "2", "-b", "32", "-k", "-f", "input"], SMALL, ["gzip", "-dc", "input.gz"]),
    "pbzip2": (["pbzip2", "-p2", "-b1", "-k", "-f", "-q", "input"], SMALL, ["bzip2", "-dc", "input.bz2"]),
    "lbzip2": (["lbzip2", "-n", "2", "-k", "-f", "input"], SMALL, ["bzip2", "-dc", "input.bz2"]),
    "plzip": (["plzip", "-n", "2", "-B", "32KiB", "-k", "-f", "input"], SMALL, ["plzip", "-dc", "input.lz"]),
    "pixz": (["pixz", "-p", "2", "-0", "-f", "0.01", "input", "input.pxz"], SMALL, ["pixz", "-d", "-i", "input.pxz"]),
    "sort": (["sort", "--parallel=8", "-n", "input", "-o", "sorted"], LARGE, ["cat", "sorted"]),
}
LEAST_POINTS = 50
# By default only programs that are quick and that scripts/bootstrap installs.
USUAL = ("xz", "zstd", "pigz", "pbzip2", "sort")
SCHEDULES = int(os.environ.get("SLALOM_SCHEDULES", "0"))
# How to start a server, the query and its answer, and how to end it.
SERVERS = {
    "redis-server": (["redis-server", "--port", "0", "--unixsocket", "server", "--save", "", "--io-threads", "2"],
                     b"SET a 1\r\nINCR a\r\nGET a\r\n", b"+OK\r\n:2\r\n$1\r\n2\r\n", b"SHUTDOWN NOSAVE\r\n"),
    "memcached": (["memcached", "-s", "server", "-t", "2", "-A", "-u", "root"],
                  b"set a 0 0 1\r\n1\r\nincr a 1\r\nget a\r\n", b"STORED\r\n2\r\nVALUE a 0 1\r\n2\r\nEND\r\n",
                  b"shutdown\r\n"),
}


def be_client(path, question, expected, end, stop, right):
    """Queries every server that appears there, and makes it end."""
    while not stop.is_set():
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(20)
                connection.connect(path)
                connection.sendall(question)
                answer = b""
                while len(answer) < len(expected):
                    answer += connection.recv(100) or expected
                right.append(answer == expected)
                connection.sendall(end)
                connection.recv(100)
        except OSError:
            time.sleep(0.005)  # there is no server


class RealPrograms(ProgramTest):
    def test_programs(self):
        tested = 0
        for name, (command, lines, undo) in PROGRAMS.items():
            if shutil.which(name) is None or (SCHEDULES == 0 and name not in USUAL):
                print(f"{name}: not installed, or not asked for (SLALOM_SCHEDULES)", file=sys.stderr)
                continue
            with self.subTest(name):
                text = b"".join(b"%d\n" % i for i in range(lines))
                (self.folder / "input").write_bytes(text)
                self.run_command(command, SCHEDULES or (4 if lines == LARGE else 12))
                done = subprocess.run(undo, cwd=self.folder, capture_output=True, check=True)
                self.assertTrue(done.stdout == text, f"{name} did its work wrongly")
                tested += 1
        self.assertGreater(tested, 0, "none of the programs is installed")

    @unittest.skipUnless(SCHEDULES, "not asked for (SLALOM_SCHEDULES)")
    def test_servers(self):
        for name, (command, *conversation) in SERVERS.items():
            if shutil.which(name) is None:
                print(f"{name}: not installed", file=sys.stderr)
                continue
            with self.subTest(name):
                stop, right = threading.Event(), []
                client = threading.Thread(target=be_client, args=(str(self.folder / "server"), *conversation, stop, right))
                client.start()
                try:
                    self.run_command(command, SCHEDULES)
                finally:
                    stop.set()
                    client.join()
                self.assertGreaterEqual(right.count(True), SCHEDULES)
                self.assertNotIn(False, right)

    def run_command(self, command, schedules):
        # pos is asked at every stop, random only after the choices that it has drawn ahead.
        done = self.slalom("run", "--json", "--out", "", "--strategy", "pos", "--schedules", schedules, "--patience", "60",
                           "--timeouts", "idle", "--workers", "1", "--max-steps", "1000000", "--", *command, limit=3600)
        found = json.loads(done.stdout)
        self.assertEqual([finding["title"] for finding in found["findings"]], [])
        self.assertEqual(found["trouble"], [])
        self.assertEqual(found["executions"], schedules)
        points = found["choice_points"] / schedules
        self.assertGreaterEqual(points, LEAST_POINTS)
        if SCHEDULES:
            named = " ".join(found["uncontrolled"])
            print(f"| `{' '.join(command[:5])}` | {schedules} | {points:,.0f} | {found['classes']} | "
                  f"{found['seconds'] / schedules:.2f} | {named} |", file=sys.stderr, flush=True)


if __name__ == "__main__":
    unittest.main()
