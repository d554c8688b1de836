"""Compares the number of executions with a second implementation: a model of the same programs in a few lines of Python, which
counts their schedules one by one. A lost choice point, a wrong enabled set or a schedule that runs twice would show."""

import functools
import unittest

from support import ProgramTest

# A thread is a list of operations: ("lock", m), ("unlock", m), ("post", s), ("wait", s), ("step",).
PROGRAMS = {
    "independent": [[("lock", "a"), ("unlock", "a")], [("lock", "b"), ("unlock", "b")]],
    "shared": [[("lock", "a"), ("unlock", "a")], [("lock", "a"), ("unlock", "a")]],
    "nested": [[("lock", "a"), ("lock", "b"), ("unlock", "b"), ("unlock", "a")],
               [("lock", "b"), ("lock", "a"), ("unlock", "a"), ("unlock", "b")]],
    "handshake": [[("post", "s"), ("wait", "t")], [("wait", "s"), ("post", "t")]],
    "posts": [[("post", "s")], [("post", "s"), ("wait", "s"), ("wait", "s")]],
}


def c_source(threads):
    statement = {
        "lock": "pthread_mutex_lock(&{});", "unlock": "pthread_mutex_unlock(&{});",
        "post": "sem_post(&{});", "wait": "sem_wait(&{});",
    }
    lines = ["#include <pthread.h>", "#include <semaphore.h>"]
    used = {(op[0] in ("lock", "unlock"), op[1]) for thread in threads for op in thread}
    for is_lock, name in sorted(used):
        lines.append(f"static {'pthread_mutex_t' if is_lock else 'sem_t'} {name};")
    for i, thread in enumerate(threads):
        body = " ".join(statement[op[0]].format(op[1]) for op in thread)
        lines.append(f"static void *t{i}(void *unused) {{ {body} return unused; }}")
    lines.append(f"int main(void) {{ pthread_t t[{len(threads)}];")
    lines += [f"pthread_create(&t[{i}], 0, t{i}, 0);" for i in range(len(threads))]
    lines += [f"pthread_join(t[{i}], 0);" for i in range(len(threads))]
    return "\n".join(lines) + " return 0; }\n"


def count(threads):
    """Counts all schedules of main and the threads, one operation at a time, until the process exits or no thread can run."""
    n = len(threads)
    code = [[("begin",), *[("spawn", i) for i in range(n)], *[("join", i) for i in range(n)], ("exit",)]]
    code += [[("begin",), *thread, ("end",)] for thread in threads]

    @functools.lru_cache(None)
    def schedules(at, held, counts):
        held_now, counts_now = dict(held), dict(counts)
        total, any_enabled = 0, False
        for who in range(n + 1):
            if who > 0 and at[0] <= who:  # thread `who` is spawned by operation `who` of main
                continue
            if at[who] >= len(code[who]):
                continue
            op = code[who][at[who]]
            kind, name = op[0], op[1] if len(op) > 1 else None
            if kind == "lock" and held_now.get(name) is not None:
                continue
            if kind == "wait" and counts_now.get(name, 0) == 0:
                continue
            if kind == "join" and at[name + 1] < len(code[name + 1]):
                continue
            any_enabled = True
            if kind == "exit":
                total += 1
                continue
            h, c = dict(held_now), dict(counts_now)
            if kind == "lock":
                h[name] = who
            if kind == "unlock":
                del h[name]
            if kind == "post":
                c[name] = c.get(name, 0) + 1
            if kind == "wait":
                c[name] -= 1
            total += schedules(at[:who] + (at[who] + 1,) + at[who + 1:], tuple(sorted(h.items())), tuple(sorted(c.items())))
        return total if any_enabled else 1

    return schedules((0,) * (n + 1), (), ())


class Counts(ProgramTest):
    def test_every_schedule_once(self):
        for name, threads in PROGRAMS.items():
            with self.subTest(name):
                expected = count(threads)
                self.assertLess(expected, 30_000, "too many for a test")
                program = self.build(c_source(threads), name)
                result = self.run_json(program, "--strategy", "dfs:bound=none", "--choices", "everywhere", "--keep-going",
                                       "--no-shrink", "--out", "")
                self.assert_finished(result)
                self.assertEqual(result["executions"], expected)
                self.assertEqual(bool(result["findings"]), name == "nested")


if __name__ == "__main__":
    unittest.main()
