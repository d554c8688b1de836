// Each philosopher takes the fork at the left, then the one at the right. If all have one each, they wait for
// ever.
//
// expect: deadlock
#include <mutex>
#include <thread>
#include <vector>

static constexpr int kSeats = 4;
static std::mutex forks[kSeats];

static void dine(int seat) {
  std::mutex &left = forks[seat], &right = forks[(seat + 1) % kSeats];
#ifdef FIXED
  std::scoped_lock both(left, right);
#else
  std::lock_guard first(left);
  std::lock_guard second(right);
#endif
}

int main() {
  std::vector<std::thread> guests;
  for (int seat = 0; seat < kSeats; ++seat) guests.emplace_back(dine, seat);
  for (std::thread& guest : guests) guest.join();
}
