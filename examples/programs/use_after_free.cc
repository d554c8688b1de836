// A reader takes a pointer under the lock and uses it in the next critical section; the owner may have freed
// the object in between. The memory still has its old contents: only the heap knows.
//
// flags: -fsanitize=thread
// expect: use-after-free
#include <mutex>
#include <thread>

struct Session {
  int requests = 0;
};
static std::mutex lock;
static Session* current = new Session;

static void serve() {
  Session* session = nullptr;
  {
    std::lock_guard guard(lock);
    session = current;
#ifdef FIXED
    if (session != nullptr) ++session->requests;
#endif
  }
#ifndef FIXED
  std::lock_guard guard(lock);
  if (session != nullptr) ++session->requests;
#endif
}

int main() {
  std::thread server(serve);
  {
    std::lock_guard guard(lock);
    delete current;
    current = nullptr;
  }
  server.join();
}
