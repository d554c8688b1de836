// Small random programs for tests that compare searches. They use every primitive of the toy language,
// blocking ones too, and no loops. They have so few operations that all schedules can be executed.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "toy/toy_builder.h"

namespace slalom {

struct RandomProgram {
  ToyBuilder builder{"random"};
  std::string text;  // for failure messages
};

// Returns the first program's number for tests that use many programs. Another number gives other programs:
// see docs/patterns.md.
inline uint64_t first_program() {
  const char* first = std::getenv("SLALOM_FIRST_PROGRAM");
  return first == nullptr ? 0 : std::strtoull(first, nullptr, 10);
}

class ProgramGenerator {
 public:
  explicit ProgramGenerator(uint64_t seed) : rng_(seed, 77) {}

  RandomProgram make(int operations) {
    RandomProgram program;
    ToyBuilder& b = program.builder;
    b.shared("x").shared("y").shared("f", {.atomic = true}).shared("a", {.size = 2});
    b.sync("m", ToySyncKind::Mutex).sync("l", ToySyncKind::Mutex).sync("rw", ToySyncKind::RwLock);
    b.sync("c", ToySyncKind::Condvar)
        .sync("s", ToySyncKind::Semaphore, {.count = static_cast<int64_t>(rng_.below(2))});
    b.sync("b", ToySyncKind::Barrier, {.count = 2});
    const int threads = 2 + static_cast<int>(rng_.below(2));
    flavour_ = rng_.below(5);
    timer_ = rng_.below(2) == 0;
    std::vector<std::string> code(static_cast<size_t>(threads));
    // The handler adds operations of its own.
    int left = flavour_ == 4 && !timer_ ? operations - 2 : operations;
    while (left > 0) {
      const size_t t = rng_.below(code.size());
      left -= add(code[t], left);
    }
    if (flavour_ == 3 && rng_.below(2) == 0) {
      code[0] = "spawn child\n" + code[0];
      if (rng_.below(2) == 0) code[0] += "join child\n";
      const std::string child = rng_.below(2) == 0 ? "x = 7\n" : "r = x\nassert r != 3\n";
      b.thread("child", child, {.start = false});
      program.text += "child (spawned):\n" + child;
    }
    for (size_t t = 0; t < code.size(); ++t) {
      b.thread("t" + std::to_string(t), code[t]);
      program.text += "t" + std::to_string(t) + ":\n" + code[t];
    }
    if (flavour_ == 4) {
      if (!timer_) {
        const char* handlers[] = {"x = 5\n", "y = 6\nr = x\n", "r = x\nassert r == 0\n",
                                  "x = 5\nr = f\ny = r\n"};
        const std::string handler = handlers[rng_.below(4)];
        const auto times = static_cast<int64_t>(rng_.below(2));
        b.interrupt("tick", "t0", handler, times);
        program.text += "interrupt on t0, " + std::to_string(times) + " times:\n" + handler;
      } else {
        b.timer("late", "x = 9\n");
        program.text += "timer: x = 9\n";
      }
    }
    return program;
  }

 private:
  // Appends an operation, and returns the number of its visible operations.
  int add(std::string& code, int left) {
    const char* variable[] = {"x", "y", "a[0]", "a[1]", "f"};
    const std::string v = variable[rng_.below(5)];
    const std::string w = variable[rng_.below(5)];
    const auto number = [&](uint64_t n) { return std::to_string(rng_.below(n)); };
    switch (rng_.below(left >= 3 ? 12 : 5)) {
      case 0:
        code += "r = " + v + "\n";
        return 1;
      case 1:
        code += v + " = " + number(4) + "\n";
        return 1;
      case 2:
        code += "r = cas(f, " + number(2) + ", " + number(3) + ")\n";
        return 1;
      case 3:
        code += "r = " + v + "\nassert r != 3\n";
        return 1;
      case 4:
        code += rng_.below(3) == 0 ? "yield\n" : "q = fetch_add(f, 1)\n";
        return 1;
      case 5:
        code += v + " = " + w + " + 1\n";
        return 2;
      case 6:
        code += "r = " + v + "\nif r == 1 {\n" + w + " = 2\n}\n";
        return 2;
      case 7:
        code += "lock m\n" + v + " = " + number(4) + "\nunlock m\n";
        return 3;
      default:
        return add_flavoured(code, left, v, w);
    }
  }
  int add_flavoured(std::string& code, int left, const std::string& v, const std::string& w) {
    const uint64_t kind = rng_.below(4);
    switch (flavour_) {
      case 0:  // locks
        if (kind == 0 && left >= 4) {
          code += rng_.below(2) == 0 ? "lock m\nlock l\nunlock l\nunlock m\n"
                                     : "lock l\nlock m\nunlock m\nunlock l\n";
          return 4;
        }
        if (kind == 1) {
          code += "if trylock(m) {\n" + v + " = 1\nunlock m\n}\n";
          return 3;
        }
        code += "lock l\nr = " + v + "\nunlock l\n";
        return 3;
      case 1:  // waiting
        if (kind == 0) {
          code += "lock m\nwait c m\nunlock m\n";
          return 4;
        }
        if (kind == 1) {
          code += "signal c\n";
          return 1;
        }
        if (kind == 2) {
          code += "broadcast c\n";
          return 1;
        }
        code += rng_.below(2) == 0 ? "down s\n" : "up s\n";
        return 1;
      case 2:  // readers and writers, barriers
        if (kind == 0) {
          code += "wrlock rw\n" + v + " = 2\nwrunlock rw\n";
          return 3;
        }
        if (kind == 1) {
          code += "arrive b\n";
          return 1;
        }
        code += "rdlock rw\nr = " + v + "\nrdunlock rw\n";
        return 3;
      case 3:  // data choices, heap
        if (kind == 0) {
          code += "r = choose(2)\n" + v + " = r\n";
          return 2;
        }
        if (kind == 1) {
          code += "p = alloc(1)\np[0] = 1\n" + w + " = p[0]\nfree(p)\n";
          return 5;
        }
        code += "down s\n" + v + " = 1\nup s\n";
        return 3;
      default:  // interrupts
        if (kind == 0) {
          code += "mask\nr = " + v + "\nunmask\n";
          return 3;
        }
        if (timer_ && kind < 3) {
          code += kind == 1 ? "arm late\n" : "cancel late\n";
          return 1;
        }
        if (!timer_ && kind == 1 && !raised_) {
          raised_ = true;  // only once: each run of the handler multiplies the schedules
          code += "raise tick\n";
          return 1;
        }
        code += v + " = 1\n";
        return 1;
    }
  }

  Rng rng_;
  uint64_t flavour_ = 0;
  bool raised_ = false;
  bool timer_ = false;  // of the last flavour: it has a timer, not an interrupt
};

}  // namespace slalom
