// The ring, checked from GoogleTest.
#include <gtest/gtest.h>
#include <slalom/check.h>

#include <thread>

#include "ring.h"

TEST(Ring, GivesWhatWasPut) {
  slalom::CheckOptions options;
  options.name = "ring";
  options.schedules = 5'000;
  const slalom::CheckResult result = slalom::check(options, [] {
    Ring ring;
    std::thread producer([&] { ring.push(42); });
    std::thread consumer([&] {
      int value = 0;
      if (ring.pop(value)) slalom::expect(value == 42, "the ring gives what nobody has put there");
    });
    producer.join();
    consumer.join();
  });
  EXPECT_TRUE(result.ok) << result.report;
}
