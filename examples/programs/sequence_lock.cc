// A reader of data that is guarded by a version number checks the number before it reads, but not after.
//
// flags: -fsanitize=thread
// expect: assertion
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<unsigned> version{0};
static std::atomic<int> x{0}, y{0};

static void write_pair() {
  version.fetch_add(1);
  x.store(1);
  y.store(1);
  version.fetch_add(1);
}

static void read_pair() {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const unsigned before = version.load();
    if (before % 2 != 0) continue;
    const int a = x.load(), b = y.load();
#ifdef FIXED
    if (version.load() != before) continue;
#endif
    assert(a == b);
    return;
  }
}

int main() {
  std::thread writer(write_pair), reader(read_pair);
  writer.join();
  reader.join();
}
