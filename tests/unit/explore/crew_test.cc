// A crew returns results in order, whichever worker makes them and whatever fails, and its workers really run
// at the same time.
#include "explore/crew.h"

#include <chrono>
#include <condition_variable>
#include <stdexcept>

#include "unit/explore/search.h"

namespace slalom {
namespace {

// Calls `before` for its task in the executing thread, then walks in the default order.
class Hooked : public Strategy {
 public:
  explicit Hooked(std::function<void(uint64_t)> before) : before_(std::move(before)) {}
  std::string name() const override { return "hooked"; }
  Recording recording() const override { return Recording::Choices; }
  std::optional<Task> begin() override { return std::nullopt; }
  std::unique_ptr<Walker> walker(const Task& task) const override {
    before_(task.index);
    return std::make_unique<Walk>();
  }
  void end(const Task&, const Execution&) override {}
  Coverage coverage() const override { return {}; }
  void save(ByteWriter&) const override {}
  bool load(ByteReader&) override { return true; }

 private:
  class Walk : public Walker {
   public:
    std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                             const Execution&) override {
      return Decision{next_in_order(point, options).agent};
    }
  };
  std::function<void(uint64_t)> before_;
};

// An event in one thread for which other threads wait. The time limit is only reached in failing tests.
class Signal {
 public:
  void give() {
    std::lock_guard lock(mutex_);
    ++given_;
    changed_.notify_all();
  }
  bool wait(int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return given_ >= times; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int given_ = 0;
};

class CrewTest : public testing::Test {
 protected:
  void make(unsigned workers) {
    const auto program = example("readers", {{"n", 2}});
    std::vector<Worker> machines(workers);
    for (Worker& worker : machines) worker.machine = std::make_unique<ToyMachine>(program);
    crew_.emplace(strategy_, ExploreOptions{}, std::move(machines));
  }
  Crew::Round run(size_t tasks, size_t room = 1024) {
    taken_.clear();
    size_t begun = 0;
    const auto next = [&]() -> std::optional<Task> {
      if (begun == tasks) return std::nullopt;
      Task task;
      task.index = begun++;
      return task;
    };
    const auto take_in = [&](const Task& task, const Execution& execution, const std::optional<Divergence>&) {
      EXPECT_TRUE(std::holds_alternative<Exited>(execution.outcome));
      if (on_take_in_) on_take_in_(task.index);
      taken_.push_back(task.index);
    };
    return crew_->run(room, next, expired_, take_in);
  }
  void expect_taken_in_order(size_t count) {
    ASSERT_EQ(taken_.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(taken_[i], i);
  }
  // Makes executions slow: a round is shared only if that is known to be worthwhile.
  void be_slow() {
    before_ = [](uint64_t) {
      const auto start = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(5)) continue;
    };
    EXPECT_EQ(run(1).taken_in, 1u);
    before_ = nullptr;
  }

  std::function<void(uint64_t)> before_;
  std::function<void(uint64_t)> on_take_in_;
  std::function<bool()> expired_ = [] { return false; };
  std::vector<uint64_t> taken_;
  Hooked strategy_{[this](uint64_t task) {
    if (before_) before_(task);
  }};
  std::optional<Crew> crew_;
};

TEST_F(CrewTest, ResultsComeInOrder) {
  for (const unsigned workers : {1u, 2u, 5u}) {
    make(workers);
    for (const size_t tasks : {0, 1, 2, 3, 9, 10, 64, 1000}) {
      const Crew::Round round = run(tasks);
      EXPECT_EQ(round.tasks, tasks);
      EXPECT_EQ(round.taken_in, tasks);
      expect_taken_in_order(tasks);
    }
    EXPECT_EQ(run(1000, 17).tasks, 17u) << "no more than there is room for";
    expect_taken_in_order(17);
  }
}

TEST_F(CrewTest, WorkersExecuteAtTheSameTime) {
  make(3);
  be_slow();
  Signal here;
  before_ = [&](uint64_t task) {
    if (task >= 3) return;
    here.give();
    EXPECT_TRUE(here.wait(3)) << "task " << task << " was left alone";
  };
  run(12);
  expect_taken_in_order(12);
}

TEST_F(CrewTest, ResultsAreTakenInWhileOthersExecute) {
  make(2);
  be_slow();
  Signal first_taken_in;
  before_ = [&](uint64_t task) { EXPECT_TRUE(task == 0 || first_taken_in.wait()); };
  on_take_in_ = [&](uint64_t task) {
    if (task == 0) first_taken_in.give();
  };
  run(40);
  expect_taken_in_order(40);
}

TEST_F(CrewTest, WhatIsReadyWhenTimeIsUpIsTakenIn) {
  for (const unsigned workers : {1u, 3u}) {
    make(workers);
    be_slow();
    std::atomic<int> asked = 0;
    expired_ = [&] { return ++asked > 50; };
    const Crew::Round round = run(200);
    EXPECT_EQ(round.tasks, 200u);
    EXPECT_LE(round.taken_in, 50u);
    EXPECT_TRUE(workers > 1 || round.taken_in == 50);  // other workers may still execute earlier tasks
    expect_taken_in_order(round.taken_in);
    expired_ = [] { return false; };
    EXPECT_EQ(run(200).taken_in, 200u) << "the next round is a whole one again";
  }
}

TEST_F(CrewTest, FailuresReachTheCallerAndLeaveTheCrewUsable) {
  for (const unsigned workers : {1u, 2u, 3u}) {
    make(workers);
    be_slow();
    before_ = [](uint64_t task) {
      if (task == 33) throw std::runtime_error("in a worker");
    };
    EXPECT_THROW(run(100), std::runtime_error);
    expect_taken_in_order(33);
    before_ = nullptr;
    on_take_in_ = [](uint64_t task) {
      if (task == 7) throw std::runtime_error("in the caller");
    };
    EXPECT_THROW(run(100), std::runtime_error);
    expect_taken_in_order(7);
    on_take_in_ = nullptr;
    run(100);
    expect_taken_in_order(100);
  }
}

}  // namespace
}  // namespace slalom
