// Signals that a body sends to itself: they have the same effects as in a program of its own, and reach no
// other process. The process's own handlers count signals that get out.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <slalom/check.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "options.h"

namespace {

using slalom::check;
using slalom::CheckOptions;
using slalom::CheckResult;
using slalom::expect;

std::atomic<int> count, code, value, sender;
void on_signal(int, siginfo_t* info, void*) {
  count.fetch_add(1);
  code.store(info->si_code);
  value.store(info->si_value.sival_int);
  sender.store(info->si_pid);
}

void handle(int signal, int flags = SA_SIGINFO) {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
  count = 0;
}

sigset_t set_of(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

TEST(CheckSignals, AllWaysToSendThem) {
  const CheckResult result = check(options("random", 100), [] {
    handle(SIGUSR1);
    expect(kill(getpid(), SIGUSR1) == 0 && count == 1 && code == SI_USER && sender == getpid(), "kill");
    expect(sigqueue(getpid(), SIGUSR1, {.sival_int = 3}) == 0 && count == 2 && value == 3, "sigqueue");
    expect(raise(SIGUSR1) == 0 && count == 3 && code == SI_TKILL, "raise");
    expect(pthread_kill(pthread_self(), SIGUSR1) == 0 && count == 4, "pthread_kill");
    expect(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0 && count == 5, "tgkill");
    siginfo_t info = {};
    info.si_code = SI_MESGQ;
    info.si_pid = 17;
    expect(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &info) == 0 && count == 6, "rt_sigqueueinfo");
    expect(code == SI_MESGQ && sender == 17, "another cause than given");
    expect(kill(getpid(), 0) == 0 && kill(getpid(), 65) == -1 && count == 6, "a question, an error");
    expect(kill(getppid(), SIGUSR1) == -1 && errno == ESRCH, "nobody's parent");
    signal(SIGUSR1, SIG_IGN);
    expect(kill(getpid(), SIGUSR1) == 0 && raise(SIGUSR1) == 0 && count == 6, "ignored");
  });
  EXPECT_TRUE(result.ok) << result.report;
}

// The handler runs between the two stores of the other thread, before them, or after them.
TEST(CheckSignals, AHandlerRunsAnywhereInItsThread) {
  static std::atomic<int> first, second, torn;
  const auto body = [](bool blocks) {
    first = second = torn = 0;
    signal(SIGUSR2, [](int) { torn = first != second; });
    std::thread victim([&] {
      const sigset_t set = set_of(SIGUSR2);
      if (blocks) pthread_sigmask(SIG_BLOCK, &set, nullptr);
      first = 1;
      second = 1;
      if (blocks) pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    });
    pthread_kill(victim.native_handle(), SIGUSR2);
    victim.join();
    expect(torn == 0, "the handler saw one of two");
  };
  EXPECT_FALSE(check(options("portfolio", 1'000), [&] { body(false); }).ok);
  const CheckResult fixed = check(options("portfolio", 1'000), [&] { body(true); });
  EXPECT_TRUE(fixed.ok) << fixed.report;
}

TEST(CheckSignals, WaitingForThem) {
  const CheckResult result = check(options("random", 100), [] {
    const sigset_t both = [] {
      sigset_t set = set_of(SIGUSR1);
      sigaddset(&set, SIGTERM);
      return set;
    }();
    pthread_sigmask(SIG_BLOCK, &both, nullptr);
    std::thread waiter([&] {
      int signal = 0, other = 0;
      sigwait(&both, &signal);
      sigwait(&both, &other);
      expect(signal + other == SIGUSR1 + SIGTERM, "other signals than were sent");
    });
    kill(getpid(), SIGTERM);
    pthread_kill(waiter.native_handle(), SIGUSR1);
    waiter.join();
    sigset_t left;
    sigpending(&left);
    expect(!sigismember(&left, SIGUSR1) && !sigismember(&left, SIGTERM), "one is left");
  });
  EXPECT_TRUE(result.ok) << result.report;
}

TEST(CheckSignals, WhatWouldEndTheProgramEndsTheExecution) {
  const struct {
    const char* text;
    std::function<void(pthread_t)> sends;
  } cases[] = {
      {"killed by signal TERM", [](pthread_t) { kill(getpid(), SIGTERM); }},
      {"killed by signal KILL", [](pthread_t) { kill(0, SIGKILL); }},
      {"killed by signal USR1", [](pthread_t) { sigqueue(getpid(), SIGUSR1, {}); }},
      {"killed by signal ABRT", [](pthread_t) { raise(SIGABRT); }},
      {"killed by signal SEGV", [](pthread_t other) { pthread_kill(other, SIGSEGV); }},
      {"stopped by signal STOP", [](pthread_t) { syscall(SYS_kill, getpid(), SIGSTOP); }},
      {"TERM to another process", [](pthread_t) { kill(1, SIGTERM); }},
      {"a signal to another process", [](pthread_t) { kill(-1, 0); }},
      {"forks", [](pthread_t) { fork(); }},
  };
  for (const auto& [text, sends] : cases) {
    const auto body = [&sends = sends](bool when_late) {
      std::atomic<bool> late{false};
      std::thread first([&] { late.store(true); });
      std::thread second([&, other = pthread_self()] {
        if (late.load() && when_late) sends(other);
      });
      first.join();
      second.join();
    };
    const CheckResult broken = check(options("portfolio", 1'000), [&] { body(true); });
    ASSERT_EQ(broken.findings.size(), 1u) << text << broken.report;
    EXPECT_EQ(broken.findings[0].kind, "crash");
    EXPECT_NE(broken.report.find(text), std::string::npos) << broken.report;
    EXPECT_TRUE(check(options("portfolio", 1'000), [&] { body(false); }).ok) << text;
  }
}

// The body starts with the process's handlers and mask. Its changes do not affect the process.
TEST(CheckSignals, TheProcessKeepsItsOwn) {
  handle(SIGUSR1);
  const sigset_t usr2 = set_of(SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
  const CheckResult result = check(options("random", 20), [] {
    struct sigaction before = {};
    sigset_t mask;
    sigaction(SIGUSR1, nullptr, &before);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    expect(before.sa_sigaction == on_signal && (before.sa_flags & SA_SIGINFO) != 0, "another handler");
    expect(sigismember(&mask, SIGUSR2) == 1, "another mask");
    count = 0;
    raise(SIGUSR1);
    raise(SIGUSR2);
    expect(count == 1, "the process's handler");
    signal(SIGUSR1, SIG_DFL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    raise(SIGUSR1);
  });
  EXPECT_FALSE(result.ok) << "SIGUSR2 is no longer blocked, and ends the program";
  EXPECT_NE(result.report.find("killed by signal USR2"), std::string::npos) << result.report;
  count = 0;
  raise(SIGUSR1);
  EXPECT_EQ(count, 1);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGUSR2), 0);
  pthread_sigmask(SIG_UNBLOCK, &usr2, nullptr);
  signal(SIGUSR1, SIG_DFL);
}

}  // namespace
