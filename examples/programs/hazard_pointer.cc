// A reader publishes the node that it uses, so that others do not free it, but does not check whether that
// was in time: the node may have been removed and freed between finding and publishing it.
//
// flags: -fsanitize=thread
// expect: use-after-free data-race
#include <atomic>
#include <cassert>
#include <thread>

struct Node {
  int value;
};

static std::atomic<Node*> current;
static std::atomic<Node*> in_use;

static void look() {
  Node* node = current.load();
  in_use.store(node);
#ifdef FIXED
  for (Node* now = current.load(); now != node; now = current.load()) {
    node = now;
    in_use.store(node);
  }
#endif
  assert(node->value > 0);
  in_use.store(nullptr);
}

static void replace() {
  Node* old = current.exchange(new Node{2});
  while (in_use.load() == old) std::this_thread::yield();
  delete old;
}

int main() {
  current = new Node{1};
  std::thread reader(look), writer(replace);
  reader.join();
  writer.join();
  delete current.load();
}
