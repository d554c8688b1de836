"""scripts/check-layers on small source trees, each with one offence, or none."""

import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CMAKE = """\
function(slalom_library name)
endfunction()
slalom_library(base EXTERNAL fmt::fmt)
slalom_library(trace LINKS base)
slalom_library(machine LINKS trace)
slalom_library(explore
  LINKS machine  # and not pmc
  EXTERNAL Threads::Threads)
slalom_library(detect LINKS trace)
slalom_library(pmc LINKS trace)
slalom_library(campaign LINKS explore detect)
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        self.write("src/CMakeLists.txt", CMAKE)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def offences(self):
        """The file:line of each offence; the exit code must agree."""
        run = subprocess.run([ROOT / "scripts/check-layers", self.root], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        found = [":".join(line.split(":")[:2]) for line in run.stdout.splitlines()]
        self.assertEqual(run.returncode, 1 if found else 0)
        return found

    def test_direct_transitive_own_and_external_includes_are_allowed(self):
        self.write(
            "src/explore/a.cc",
            '#include "explore/a.h"\n#include <vector>\n#include <fmt/format.h>\n'
            '#include "machine/machine.h"\n#include "base/check.h"\n',
        )
        self.assertEqual(self.offences(), [])

    def test_include_against_the_arrows(self):
        self.write("src/trace/a.h", '#pragma once\n\n#include "base/x.h"\n#include "machine/machine.h"\n')
        self.assertEqual(self.offences(), ["src/trace/a.h:4"])

    def test_every_spelling_of_an_include_is_seen(self):
        self.write("src/base/a.h", '#include <trace/x.h>\n  #  include "trace/x.h"\n#include\t"trace/x.h"\n')
        self.assertEqual(
            self.offences(), ["src/base/a.h:3", "src/base/a.h:1", "src/base/a.h:2", "src/base/a.h:3"]
        )

    def test_an_arrow_in_a_comment_is_none(self):
        self.write("src/explore/a.h", '#include "pmc/x.h"\n')
        self.assertEqual(self.offences(), ["src/explore/a.h:1"])

    def test_nested_folders_belong_to_their_top_folder(self):
        self.write("scripts/rooms", "explore/strategies: explore/.\n")
        self.write("src/explore/strategies/pct.cc", '#include "explore/strategy.h"\n#include "campaign/x.h"\n')
        self.assertEqual(self.offences(), ["src/explore/strategies/pct.cc:2"])

    def test_an_include_names_its_folder(self):
        self.write("src/base/a.cc", '#include "a.h"\n#include "../trace/b.h"\n')
        self.assertEqual(self.offences(), ["src/base/a.cc:1", "src/base/a.cc:2"])

    def test_a_folder_without_a_library(self):
        self.write("src/stray/a.cc", "int x;\n")
        self.assertEqual(self.offences(), ["src/stray/a.cc:1"])

    def test_detect_and_explore_stay_apart_whatever_the_arrows_say(self):
        self.write("src/CMakeLists.txt", CMAKE.replace("detect LINKS trace", "detect LINKS trace explore"))
        self.write("src/detect/a.cc", '#include "explore/strategy.h"\n')
        self.assertEqual(self.offences(), ["src/CMakeLists.txt:9", "src/detect/a.cc:1"])

    def test_detect_and_explore_stay_apart_through_others_too(self):
        self.write("src/CMakeLists.txt", CMAKE.replace("trace LINKS base", "trace LINKS base vm") + "slalom_library(vm)\n")
        self.assertEqual(self.offences(), ["src/CMakeLists.txt:6", "src/CMakeLists.txt:9", "src/CMakeLists.txt:11"])

    def test_arrows_have_no_cycle_and_no_unknown_end(self):
        self.write("src/CMakeLists.txt", "slalom_library(base LINKS trace)\nslalom_library(trace LINKS base nowhere)\n")
        self.assertEqual(
            self.offences(), ["src/CMakeLists.txt:1", "src/CMakeLists.txt:2", "src/CMakeLists.txt:2"]
        )

    def test_rooms_of_a_folder_need_arrows(self):
        self.write("scripts/rooms", "# a comment\n\npmc/low:\npmc/high: pmc/low\n")
        for room in ("low", "high", "other"):
            self.write(f"src/pmc/{room}/a.h", "")
        self.write("src/pmc/high/a.cc", '#include "pmc/high/a.h"\n#include "pmc/low/a.h"\n#include "trace/x.h"\n')
        self.write("src/pmc/beside.cc", '#include "pmc/high/a.h"\n#include "pmc/other/a.h"\n')
        self.assertEqual(self.offences(), [])
        self.write("src/pmc/low/a.cc", '#include "pmc/high/a.h"\n#include "pmc/beside.h"\n')
        self.write("src/pmc/other/deep/a.cc", '#include "pmc/low/a.h"\n#include "pmc/other/a.h"\n')
        self.assertEqual(self.offences(), ["src/pmc/low/a.cc:1", "src/pmc/low/a.cc:2", "src/pmc/other/deep/a.cc:1"])
        self.write("scripts/rooms", "pmc/low: pmc/.\npmc/high: pmc/low\npmc/.: pmc/other\npmc/other: pmc/low\n")
        self.assertEqual(self.offences(), ["scripts/rooms:1", "scripts/rooms:3", "scripts/rooms:4", "src/pmc/beside.cc:1",
                                           "src/pmc/low/a.cc:1"])

    def test_arrows_of_rooms_lead_to_rooms_of_the_same_folder(self):
        self.write("src/pmc/low/a.h", "")
        self.write("src/trace/files/a.h", "")
        self.write("scripts/rooms", "pmc/low: trace/files\npmc/gone:\n")
        self.assertEqual(self.offences(), ["scripts/rooms:1", "scripts/rooms:2"])

    def test_local_names_differ_within_a_folder(self):
        local = "\n".join((
            "namespace slalom {", "namespace {", "", "constexpr int kSize = 1, kRoom = 2;", "using Bytes = std::vector<int>;",
            "enum Register : unsigned {", "  kData,", "};", "struct Piece {", "  int kInner = 1;", "};",
            "bool is_digit(char c) {", "  return c == 0;", "}", "", "}  // namespace", "int kOutside = 1;", "}  // namespace slalom",
            ""))
        self.write("src/base/a.cc", local)
        for name in ("src/trace/a.cc", "tests/unit/base/a.cc", "tests/vm/a.cc", "tests/vm/b.cc"):
            self.write(name, local)  # other folders, and some whose files are compiled alone
        self.write("src/base/a.h", local)  # a header is not compiled for itself
        self.assertEqual(self.offences(), [])
        self.write("src/base/b.cc", local)
        self.assertEqual(self.offences(), [f"src/base/b.cc:{line}" for line in (4, 4, 6, 7, 9, 12)])
        self.write("src/base/b.cc", local.replace("vector", "span"))
        self.assertEqual(self.offences(), [f"src/base/b.cc:{line}" for line in (4, 4, 5, 6, 7, 9, 12)])
        self.write("tests/unit/base/sub/b.cc", "namespace {\nstruct Piece {\n")
        self.write("src/base/b.cc", "namespace {\n\nbool is_digit(int d) {\n}\n\n}  // namespace\n")  # overloads
        self.assertEqual(self.offences(), ["tests/unit/base/sub/b.cc:2"])

    def test_tabs(self):
        for name in ("src/base/a.cc", "tests/unit/base/a.cc", "bench/bench_a.cc"):
            self.write(name, "int x;\n\tint y;\n")
        self.assertEqual(self.offences(), ["src/base/a.cc:2", "tests/unit/base/a.cc:2", "bench/bench_a.cc:2"])

    def test_long_files_need_a_reason(self):
        self.write("src/base/full.cc", "\n" * 600)
        self.write("src/base/long.cc", "\n" * 601)
        self.write("tests/unit/base/long.cc", "\n" * 601)
        self.assertEqual(self.offences(), ["src/base/long.cc:601"])
        self.write("scripts/long-files", "# why\nsrc/base/long.cc: one table\n")
        self.assertEqual(self.offences(), [])
        self.write("scripts/long-files", "src/base/long.cc:\n")
        self.assertEqual(self.offences(), ["scripts/long-files:1"])

    def test_a_reason_for_a_file_that_is_not_long(self):
        self.write("src/base/short.cc", "int x;\n")
        self.write("scripts/long-files", "src/base/short.cc: was long\nsrc/base/gone.cc: was there\n")
        self.assertEqual(self.offences(), ["scripts/long-files:1", "scripts/long-files:2"])


if __name__ == "__main__":
    unittest.main()
