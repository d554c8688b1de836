#include "report/core/object_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

namespace slalom {
namespace {

TEST(ObjectNames, ALockIsCalledAsItsSourceLineCallsIt) {
  EXPECT_EQ(lock_expression("pthread_mutex_lock(&queue->lock);", OpKind::Lock), "queue->lock");
  EXPECT_EQ(lock_expression("if (pthread_mutex_trylock(&axel->conn[i].lock)) {", OpKind::TryLock),
            "axel->conn[i].lock");
  EXPECT_EQ(lock_expression("pthread_cond_wait(&q->more, &q->m);", OpKind::Wait), "q->more");
  EXPECT_EQ(lock_expression("pthread_cond_wait(&q->more, &q->m);", OpKind::Lock), "q->m");
  EXPECT_EQ(lock_expression("std::lock_guard<std::mutex> guard(this->lock_);", OpKind::Lock), "lock_");
  EXPECT_EQ(lock_expression("std::lock_guard guard{store.lock};", OpKind::Lock), "store.lock");
  EXPECT_EQ(lock_expression("node->m.unlock();", OpKind::Unlock), "node->m");
  EXPECT_EQ(lock_expression("sem_post(slots)", OpKind::SemPost), "slots");
}

TEST(ObjectNames, ALineThatNamesSeveralObjectsOrNoneNamesNone) {
  EXPECT_EQ(lock_expression("pthread_mutex_lock(&a); pthread_mutex_lock(&b);", OpKind::Lock), "");
  EXPECT_EQ(lock_expression("std::scoped_lock both(a, b);", OpKind::Lock), "");
  EXPECT_EQ(lock_expression("changed.wait(guard);", OpKind::Lock), "");
  EXPECT_EQ(lock_expression("}", OpKind::Unlock), "");
  EXPECT_EQ(lock_expression("", OpKind::Lock), "");
}

TEST(ObjectNames, ABlockIsCalledByTheTypeThatItsAllocationNames) {
  EXPECT_EQ(allocated_type("struct node* n = malloc(sizeof(struct node));"), "node");
  EXPECT_EQ(allocated_type("Node* n = new Node(3);"), "Node");
  EXPECT_EQ(allocated_type("auto q = std::make_unique<app::Queue>();"), "app::Queue");
  EXPECT_EQ(allocated_type("job = malloc(sizeof *job);"), "job");
  EXPECT_EQ(allocated_type("char* text = malloc(100);"), "text");
  EXPECT_EQ(allocated_type("int* counts = malloc(4 * sizeof(int));"), "counts");
  EXPECT_EQ(allocated_type("return grow(list);"), "");
}

// As a program's: everything is on the heap.
class HeapNames final : public Names {
 public:
  std::string agent(AgentId) const override { return "main"; }
  std::string role(AgentId) const override { return "main"; }
  std::string object(ObjectId id) const override { return fmt::format("heap@{:x}", id.raw); }
  std::string place(Place pc) const override { return fmt::format("a.c:{} (f)", pc.raw); }
  std::string source(Place pc) const override { return sources.contains(pc.raw) ? sources.at(pc.raw) : ""; }

  std::map<uint64_t, std::string> sources = {{1, "n = malloc(sizeof(struct node));"},
                                             {2, "pthread_mutex_lock(&n->lock);"},
                                             {3, "pthread_mutex_lock(m);"}};
};

void add(TraceLog& log, OpKind op, uint64_t pc, uint64_t object, int64_t value = 0) {
  Event event;
  event.step = Step{log.events().size()};
  event.agent = AgentId::initial(0);
  event.op = op;
  event.pc = Place{pc};
  event.object = ObjectId{object};
  event.value = value;
  log.on_event(event);
}

TEST(ObjectNames, EveryObjectHasANameOfItsOwn) {
  HeapNames names;
  TraceLog log;
  add(log, OpKind::Alloc, 1, 0x1000, 64);
  add(log, OpKind::Alloc, 1, 0x2000, 64);
  add(log, OpKind::Lock, 2, 0x1008);
  add(log, OpKind::Lock, 3, 0x5000);
  add(log, OpKind::Lock, 3, 0x6000);
  add(log, OpKind::SemPost, 9, 0x7000);
  add(log, OpKind::SemPost, 9, 0x8000);
  const ObjectNames named(log, names);
  const auto name = [&](uint64_t object) { return named.object(ObjectId{object}); };
  EXPECT_EQ(name(0x1000), "node#1");
  EXPECT_EQ(name(0x2000), "node#2");
  EXPECT_EQ(name(0x2010), "node#2+16");
  EXPECT_EQ(name(0x1008), "n->lock");
  EXPECT_EQ(name(0x5000), "m#1");
  EXPECT_EQ(name(0x6000), "m#2");
  EXPECT_EQ(name(0x7000), "semaphore#1");
  EXPECT_EQ(name(0x8000), "semaphore#2");
  EXPECT_EQ(named.renamed("main waits for heap@6000, held by main since heap@1008."),
            "main waits for m#2, held by main since n->lock.");
}

TEST(ObjectNames, MemoryThatIsGivenOutTwiceHasTheNameOfNeitherBlock) {
  HeapNames names;
  TraceLog log;
  add(log, OpKind::Alloc, 1, 0x1000, 64);
  add(log, OpKind::Alloc, 1, 0x1020, 64);
  add(log, OpKind::Free, 9, 0x1000);
  const ObjectNames named(log, names);
  EXPECT_EQ(named.object(ObjectId{0x1000}).substr(0, 5), "heap#");
}

}  // namespace
}  // namespace slalom
