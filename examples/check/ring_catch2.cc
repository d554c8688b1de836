// The ring, checked from Catch2. Its main() is in catch2_main.cc.
#include <slalom/check.h>

#include <catch2/catch.hpp>
#include <thread>

#include "ring.h"

TEST_CASE("a full ring takes no more") {
  const slalom::CheckResult result = slalom::check([] {
    Ring ring;
    int taken = 0, sum = 0;
    std::thread producer([&] {
      for (int i = 1; i <= 3; ++i) taken += ring.push(i);
    });
    std::thread consumer([&] {
      int value = 0;
      if (ring.pop(value)) sum += value;
    });
    producer.join();
    consumer.join();
    slalom::expect(taken >= 2 && sum <= 1, "an element came out of turn");
  });
  INFO(result.report);
  CHECK(result.ok);
}
