"""The names of a program's memory in reports: members, elements, variables on stacks, and objects on the heap."""

import json
import os
import re
import unittest
from pathlib import Path

from support import ProgramTest, line_of

ROOT = Path(__file__).resolve().parents[2]

# Two threads race on MEMBER of an object that is on main()'s stack, global or on the heap.
MEMBERS = """
#include <pthread.h>
#include <stdlib.h>
struct slot { long key; int uses; };
struct queue { pthread_mutex_t lock; struct slot slots[4]; int count; struct queue *next; };
struct queue q;
static void *add(void *passed) {
  struct queue *queue = passed;
  queue->MEMBER = queue->MEMBER + 1;
  return NULL;
}
int main(void) {
  struct queue local = {0};
  struct queue *heap = malloc(sizeof *heap);
  heap->MEMBER = 0;
  pthread_t a, b;
  pthread_create(&a, NULL, add, WHICH);
  pthread_create(&b, NULL, add, WHICH);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  int sum = local.MEMBER + heap->MEMBER + q.MEMBER;
  free(heap);
  return sum == 2 ? 0 : 1;
}
"""
# slalom sees no allocation. The locks are on main()'s stack.
ON_STACK = """
#include <mutex>
#include <thread>
struct Account { int number = 0; std::mutex lock; };
static void move(Account &from, Account &to) {
  std::lock_guard first(from.lock);
  std::lock_guard second(to.lock);
}
int main() {
  std::mutex done;
  Account accounts[2];
  std::thread back([&] {
    std::lock_guard guard(done);
    move(accounts[1], accounts[0]);
  });
  move(accounts[0], accounts[1]);
  back.join();
}
"""
NODES = """
#include <cassert>
#include <mutex>
#include <thread>
struct Node { int value; Node *next; };
static Node *head;
static std::mutex lock;
static void push(int value) {
  Node *node = new Node{value, nullptr};
  node->next = head;
  { std::lock_guard guard(lock); head = node; }
}
int main() {
  push(1);
  std::thread a(push, 2), b(push, 3);
  a.join();
  b.join();
  int length = 0;
  for (Node *node = head; node != nullptr; node = node->next) ++length;
  assert(length == 3);
}
"""
# The allocations do not show the objects' types. take() gets only the lock; its callers have a pointer to the object. leave()
# has such a pointer itself.
POINTERS = """
#include <pthread.h>
#include <stdlib.h>
struct queue { int count; pthread_mutex_t lock; };
struct pool { long size; pthread_mutex_t lock; };
struct both { struct queue *queue; struct pool *pool; };
static void __attribute__((noinline)) take(pthread_mutex_t *mutex) { pthread_mutex_lock(mutex); }
static void __attribute__((noinline)) leave(struct queue *queue) { pthread_mutex_unlock(&queue->lock); }
static void *one(void *passed) {
  struct both *both = passed;
  struct queue *queue = both->queue;
  struct pool *pool = both->pool;
  take(&queue->lock);
  take(&pool->lock);
  pthread_mutex_unlock(&pool->lock);
  leave(queue);
  return NULL;
}
static void *other(void *passed) {
  struct both *both = passed;
  struct queue *queue = both->queue;
  struct pool *pool = both->pool;
  take(&pool->lock);
  take(&queue->lock);
  leave(queue);
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}
int main(void) {
  struct both both = {calloc(1, 64), calloc(1, 64)};
  pthread_mutex_init(&both.queue->lock, NULL);
  pthread_mutex_init(&both.pool->lock, NULL);
  pthread_t a, b;
  pthread_create(&a, NULL, one, &both);
  pthread_create(&b, NULL, other, &both);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
}
"""
# Each lock is a block of its own.
LOCK_BLOCKS = """
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t *first, *second;
static void *other(void *unused) {
  pthread_mutex_lock(second);
  pthread_mutex_lock(first);
  return unused;
}
int main(void) {
  first = malloc(sizeof *first);
  second = malloc(sizeof(pthread_mutex_t));
  pthread_mutex_init(first, NULL);
  pthread_mutex_init(second, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, other, NULL);
  pthread_mutex_lock(first);
  pthread_mutex_lock(second);
  exit(0);
}
"""
WAYS = {"O0": ["-O0", "-fpie", "-pie"], "O2": ["-O2", "-fno-pie", "-no-pie"]}


class NamesTest(ProgramTest):
    def races(self, program, *options):
        """Returns the races of a program, as JSON, and the report on the first one."""
        result = self.run_json(program, "--strategy", "dfs", *options)
        found = [finding for finding in result["findings"] if finding["kind"] == "data-race"]
        self.assertTrue(found)
        return found, self.slalom("replay", "--full", found[0]["capsule"]).stdout

    def member(self, way, which, member, *, debug="-g"):
        name = "_".join(["member", way, re.sub(r"\W", "", which), re.sub(r"\W", "", member), debug.strip("-")])
        flags = ["-fsanitize=thread", f"-DWHICH={which}", f"-DMEMBER={member}", *WAYS[way], debug]
        found, report = self.races(self.build(MEMBERS, name=name, flags=flags))
        return found[0], report

    def test_a_global_variable_has_its_members_names(self):
        for way in WAYS:
            with self.subTest(way):
                race, report = self.member(way, "&q", "count")
                self.assertIn("data race on q.count:", race["title"])
                self.assertIn("q.count", report)
                self.assertLessEqual({item["text"] for item in race["evidence"]}, {"load of q.count", "store of q.count"})

    def test_elements_of_an_array_are_one_in_titles(self):
        race, report = self.member("O0", "&q", "slots[3].uses")
        self.assertIn("data race on q.slots[].uses:", race["title"])
        self.assertIn("q.slots[3].uses", report)

    def test_a_variable_on_a_stack_has_its_name(self):
        for way in WAYS:
            with self.subTest(way):
                race, report = self.member(way, "&local", "slots[1].key")
                self.assertIn("data race on local:", race["title"])
                self.assertIn("local.slots[1].key", report)
                self.assertIn("local: a variable of main", report)
                self.assertIn("of local.slots[1].key", race["evidence"][0]["text"])
                [known] = race["objects"]
                self.assertEqual((known["name"], known["kind"], known["function"], known["agent"]), ("local", "local", "main", "1"))

    def test_a_block_has_its_type_and_members(self):
        for way in WAYS:
            with self.subTest(way):
                race, report = self.member(way, "heap", "count")
                self.assertIn("data race on heap:", race["title"])
                self.assertIn("queue#1->count", report)
                line = line_of(MEMBERS, "malloc(")
                self.assertRegex(report, rf"queue#1: queue, 120 bytes, allocated by main at\s+\w+\.c:{line}")
                [known] = race["objects"]
                self.assertEqual((known["name"], known["kind"], known["type"], known["size"]), ("queue#1", "block", "queue", 120))
                self.assertIn(f".c:{line} (main)", known["allocated"])
                self.assertIn(".c:", race["evidence"][0]["place"])

    def test_without_debug_information_offsets_and_kinds_are_left(self):
        race, report = self.member("O0", "&q", "count", debug="-g0")
        self.assertIn("data race on q+104:", race["title"])
        race, report = self.member("O0", "heap", "count", debug="-g0")
        self.assertIn("block#1+104", report)
        self.assertIn("block#1: 120 bytes, allocated by main", report)
        self.assertNotIn("heap@", json.dumps(race))
        race, report = self.member("O0", "&local", "count", debug="-g0")
        self.assertIn("local#1", report)
        self.assertNotIn("objects", race)

    def test_locks_on_a_stack_have_their_variables_names(self):
        for way, flags in WAYS.items():
            with self.subTest(way):
                program = self.build(ON_STACK, name="on_stack_" + way, suffix=".cc", flags=flags)
                [finding] = [each for each in self.run_json(program)["findings"] if each["kind"] == "deadlock"]
                self.assertEqual(finding["replayed"], "10/10")
                report = self.slalom("replay", "--full", finding["capsule"]).stdout
                for words in ("lock accounts[0].lock", "lock accounts[1].lock", "accounts: a variable of main"):
                    self.assertIn(words, report)
                self.assertRegex(report, r"lock +done\b")
                for text in (report, json.dumps(finding)):
                    self.assertNotIn("local@", text)
                    self.assertNotIn("local#", text)

    def test_locks_in_objects_are_known_by_pointers_to_these(self):
        for way, flags in WAYS.items():
            with self.subTest(way):
                program = self.build(POINTERS, name="pointers_" + way, flags=flags)
                [finding] = [each for each in self.run_json(program)["findings"] if each["kind"] == "deadlock"]
                report = self.slalom("replay", "--full", finding["capsule"]).stdout
                for words in ("lock queue#1->lock", "lock pool#1->lock", "queue#1: queue, 48 bytes", "pool#1: pool, 48 bytes"):
                    self.assertIn(words, report)
                self.assertEqual({each["kind"] for each in finding["objects"]}, {"object"})

    def test_a_lock_that_is_a_block_has_its_variables_name(self):
        program = self.build(LOCK_BLOCKS, name="lock_blocks", flags=["-fsanitize=thread"])
        [finding] = [each for each in self.run_json(program)["findings"] if each["kind"] == "deadlock"]
        report = self.slalom("replay", "--full", finding["capsule"]).stdout
        self.assertRegex(report, r"lock first +(line|blocked)")
        self.assertRegex(report, r"lock second +(line|blocked)")
        self.assertNotIn("pthread_mutex_t#", report)

    def test_the_report_on_an_example(self):
        """Omits parts that depend on libraries and on the search. SLALOM_UPDATE_GOLDEN=1 writes the file anew."""
        text = (ROOT / "examples/programs/reference_count.c").read_text(encoding="utf-8")
        program = self.build(text, name="reference_count", flags=["-fsanitize=thread"])
        [finding] = [each for each in self.run_json(program, "--strategy", "dfs")["findings"] if each["severity"] == "failure"]
        report = self.slalom("replay", finding["capsule"]).stdout
        shown = re.sub(r"0x[0-9a-f]{6,}", "0x...", report[report.index("Timeline"):report.index("\nSchedule")])
        golden = ROOT / "tests/golden/programs/reference_count.txt"
        if "SLALOM_UPDATE_GOLDEN" in os.environ:
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(shown, encoding="utf-8")
        self.assertEqual(shown, golden.read_text(encoding="utf-8"))

    def test_blocks_are_counted_by_thread_in_every_schedule(self):
        program = self.build(NODES, name="nodes", suffix=".cc", flags=["-fsanitize=thread"])
        names = set()
        for seed in range(3):
            result = self.run_json(program, "--strategy", "random", "--seed", seed, "--schedules", 200, "--out", f"nodes{seed}")
            for finding in result["findings"]:
                report = self.slalom("replay", "--full", "--original", finding["capsule"]).stdout
                names |= set(re.findall(r"(Node#[\d.]+): Node, 16 bytes, allocated by (\S+)", report))
        self.assertIn(("Node#1", "main"), names)
        self.assertLessEqual(names, {("Node#1", "main"), ("Node#1.1", "push#1"), ("Node#2.1", "push#2")})
        self.assertGreater(len(names), 1)


if __name__ == "__main__":
    unittest.main()
