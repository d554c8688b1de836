"""The installed package as another project uses it: examples/check is configured against an install prefix, built and run.

SLALOM_BUILD: the build directory; CMAKE: the cmake command.
"""

import os
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["SLALOM_BUILD"])
CMAKE = os.environ.get("CMAKE", "cmake")


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **more)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=BUILD)
        cls.prefix = Path(cls.folder.name) / "prefix"
        installed = run(CMAKE, "--install", str(BUILD), "--prefix", str(cls.prefix))
        assert installed.returncode == 0, installed.stdout + installed.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build(self, fixed):
        build = Path(self.folder.name) / ("fixed" if fixed else "broken")
        cached = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        configured = run(CMAKE, *cached, "-S", str(ROOT / "examples/check"), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release",
                         "-DCMAKE_CXX_FLAGS_RELEASE=-O1", f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DFIXED={'ON' if fixed else 'OFF'}")
        self.assertEqual(configured.returncode, 0, configured.stdout + configured.stderr)
        built = run(CMAKE, "--build", str(build))
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        return build

    def test_broken(self):
        build = self.build(fixed=False)
        environment = dict(os.environ, SLALOM_FINDINGS=str(build / "findings"))
        test = run(str(build / "ring_gtest"), env=environment)
        self.assertEqual(test.returncode, 1, test.stdout + test.stderr)
        self.assertIn("the ring gives what nobody has put there", test.stdout)
        self.assertIn("tail_.store(tail + 1", test.stdout)
        replay = next(line for line in test.stdout.splitlines() if "SLALOM_REPLAY=" in line).split()
        name, capsule = replay[0].split("=")
        for _ in range(3):
            again = run(*replay[1:], env=dict(os.environ, **{name: capsule}))
            self.assertIn("the same again", again.stdout + again.stderr)

        test = run(str(build / "ring_catch2"), env=environment)
        self.assertEqual(test.returncode, 1, test.stdout + test.stderr)
        self.assertIn("a full ring takes no more", test.stdout)
        self.assertIn("data race on", test.stdout)

        explored = run("ctest", "--test-dir", str(build), "-R", "transfer", "--output-on-failure")
        self.assertNotEqual(explored.returncode, 0)
        self.assertIn("deadlock", explored.stdout)
        suite = xml.parse(build / "transfer.xml").getroot().find("testsuite")
        self.assertEqual(suite.get("failures"), "1")
        self.assertEqual(suite.find("testcase/failure").get("type"), "deadlock")

    def test_fixed(self):
        build = self.build(fixed=True)
        tests = run("ctest", "--test-dir", str(build), "--output-on-failure")
        self.assertIn("0 tests failed out of 3", tests.stdout)
        self.assertEqual(tests.returncode, 0, tests.stdout + tests.stderr)
        suite = xml.parse(build / "transfer.xml").getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("1", "0", "0"))


if __name__ == "__main__":
    unittest.main()
