// An ordinary program: two threads move money between the same two accounts, each locking its own side first.
// FIXED, they lock in the same order.
#include <mutex>
#include <thread>

struct Account {
  std::mutex lock;
  int balance = 100;
};

static Account left, right;

static void move(Account& from, Account& to, int amount) {
#ifdef FIXED
  std::scoped_lock both(from.lock, to.lock);
#else
  std::lock_guard first(from.lock);
  std::lock_guard second(to.lock);
#endif
  from.balance -= amount;
  to.balance += amount;
}

int main() {
  std::thread there([] { move(left, right, 10); });
  std::thread back([] { move(right, left, 20); });
  there.join();
  back.join();
  return left.balance + right.balance == 200 ? 0 : 1;
}
