#include "report/core/object_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

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

// As a program's: everything is on the heap.
class HeapNames final : public Names {
 public:
  std::string agent(AgentId) const override { return "main"; }
  std::string role(AgentId) const override { return "main"; }
  std::string object(ObjectId id) const override { return fmt::format("heap@{:x}", id.raw); }
  std::string place(Place pc) const override { return fmt::format("a.c:{} (f)", pc.raw); }
  std::string source(Place pc) const override { return sources.contains(pc.raw) ? sources.at(pc.raw) : ""; }
  std::optional<Local> local(ObjectId id) const override {
    return locals.contains(id.raw) ? std::optional(locals.at(id.raw)) : std::nullopt;
  }
  Block block(Place allocated, uint64_t size) const override {
    if (allocated.raw == 4) return {"text", ""};
    return allocated.raw == 1 && size == 64 ? Block{"node", "node"} : Block{};
  }
  std::string block_part(Place allocated, uint64_t size, uint64_t offset) const override {
    return allocated.raw == 1 && offset == 16 ? "->next" : Names::block_part(allocated, size, offset);
  }

  std::map<uint64_t, std::string> sources = {{2, "pthread_mutex_lock(&n->lock);"},
                                             {3, "pthread_mutex_lock(m);"}};
  std::optional<Pointed> pointed(ObjectId id) const override {
    const uint64_t begin = id.raw & ~uint64_t{0xff};
    return objects.contains(begin) ? std::optional(Pointed{begin, 256, "queue", "->lock"}) : std::nullopt;
  }
  std::map<uint64_t, Local> locals;
  std::set<uint64_t> objects;
};

void add(TraceLog& log, OpKind op, uint64_t pc, uint64_t object, int64_t value = 0,
         AgentId agent = AgentId::initial(0)) {
  Event event;
  event.step = Step{log.events().size()};
  event.agent = agent;
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
  EXPECT_EQ(name(0x2010), "node#2->next");
  EXPECT_EQ(name(0x2020), "node#2+32");
  EXPECT_EQ(name(0x1008), "node#1+8");
  EXPECT_EQ(name(0x5000), "m#1");
  EXPECT_EQ(name(0x6000), "m#2");
  EXPECT_EQ(name(0x7000), "semaphore#1");
  EXPECT_EQ(name(0x8000), "semaphore#2");
  EXPECT_EQ(named.renamed("main waits for heap@6000, held by main since heap@1010."),
            "main waits for m#2, held by main since node#1->next.");
}

TEST(ObjectNames, ABlockOfNoKnownTypeLetsTheSourceNameItsLock) {
  HeapNames names;
  TraceLog log;
  add(log, OpKind::Alloc, 9, 0x1000, 64);
  add(log, OpKind::Alloc, 4, 0x2000, 10);
  add(log, OpKind::Lock, 2, 0x1008);
  const ObjectNames named(log, names);
  EXPECT_EQ(named.object(ObjectId{0x1008}), "n->lock");
  EXPECT_EQ(named.object(ObjectId{0x1000}), "block#1");
  EXPECT_EQ(named.object(ObjectId{0x2004}), "text#1+4");
  add(log, OpKind::Lock, 3, 0x2000);
  const ObjectNames again(log, names);
  EXPECT_EQ(again.object(ObjectId{0x2000}), "m");
  EXPECT_EQ(again.whole(ObjectId{0x2000}), "m");
}

TEST(ObjectNames, BlocksCountForEachThread) {
  const AgentId first = AgentId::initial(0).child(0), second = AgentId::initial(0).child(1);
  HeapNames names;
  TraceLog one, other;
  for (TraceLog* log : {&one, &other}) {
    add(*log, OpKind::Alloc, 1, 0x1000, 64);
    for (int i = 0; i < 2; ++i) {
      // The same two blocks, in either order.
      const bool is_first = (i == 0) == (log == &one);
      add(*log, OpKind::Alloc, 1, is_first ? 0x2000 : 0x3000, 64, is_first ? first : second);
    }
    add(*log, OpKind::Alloc, 1, 0x4000, 64, first);
  }
  for (TraceLog* log : {&one, &other}) {
    const ObjectNames named(*log, names);
    EXPECT_EQ(named.object(ObjectId{0x1000}), "node#1");
    EXPECT_EQ(named.object(ObjectId{0x2000}), "node#1.1");
    EXPECT_EQ(named.object(ObjectId{0x3000}), "node#2.1");
    EXPECT_EQ(named.object(ObjectId{0x4000}), "node#1.2");
  }
}

TEST(ObjectNames, VariablesOfStacksHaveTheirNamesAndFunctionsWhereOthersAreCalledSo) {
  HeapNames names;
  const AgentId worker = AgentId::initial(0).child(0);
  names.locals = {{0x100, {"m", "m", "main", AgentId::initial(0)}},
                  {0x200, {"args.count", "args", "main", AgentId::initial(0)}},
                  {0x300, {"args.count", "args", "work", worker}},
                  {0x400, {"i", "i", "work", worker}},
                  {0x500, {"i", "i", "work", AgentId::initial(0)}}};
  TraceLog log;
  for (uint64_t address : {0x100, 0x200, 0x300, 0x400, 0x500}) add(log, OpKind::Lock, 3, address);
  const ObjectNames named(log, names);
  const auto name = [&](uint64_t object) { return named.object(ObjectId{object}); };
  EXPECT_EQ(name(0x100), "m");
  EXPECT_EQ(name(0x200), "args.count in main");
  EXPECT_EQ(name(0x300), "args.count in work");
  // HeapNames calls all threads alike: two variables that nothing tells apart have what their lock's line
  // says.
  EXPECT_EQ(name(0x400), "m#1");
  EXPECT_EQ(name(0x500), "m#2");
}

TEST(ObjectNames, AnObjectToWhichTheCodeHasAPointerHasItsTypeUnlessItsBlockHas) {
  HeapNames names;
  names.objects = {0x1000, 0x2000, 0x3000};
  TraceLog log;
  add(log, OpKind::Alloc, 1, 0x1000, 64);
  for (uint64_t address : {0x1010, 0x3010, 0x2020, 0x2010}) add(log, OpKind::Lock, 2, address);
  const ObjectNames named(log, names);
  const auto name = [&](uint64_t object) { return named.object(ObjectId{object}); };
  EXPECT_EQ(name(0x1010), "node#1->next");
  EXPECT_EQ(name(0x3010), "queue#1->lock");
  EXPECT_EQ(named.whole(ObjectId{0x1000}), "node#1");
  EXPECT_EQ(named.whole(ObjectId{0x3000}), "queue#1");
  EXPECT_EQ(name(0x2010), "queue#2->lock");
  EXPECT_EQ(name(0x2020), "queue#2->lock");
}

TEST(ObjectNames, WhatNamesStandForIsExplainedIfTheyAreUsed) {
  HeapNames names;
  names.locals = {{0x5000, {"args[1].count", "args", "main", AgentId::initial(0)}}};
  TraceLog log;
  for (int i = 0; i < 12; ++i) add(log, OpKind::Alloc, 1, 0x1000 + 64 * static_cast<uint64_t>(i), 64);
  add(log, OpKind::Lock, 3, 0x5000);
  const ObjectNames named(log, names);
  const auto explained = [&](const std::string& text) {
    std::string all;
    for (const NamedObject& object : named.explained({text}))
      all += fmt::format("{}:{:x}:{}:{} ", object.name, object.address, object.type, object.function);
    return all;
  };
  EXPECT_EQ(explained("store of node#12->next"), "node#12:12c0:node: ");
  EXPECT_EQ(explained("store of node#1."), "node#1:1000:node: ");
  EXPECT_EQ(explained("node#1.1, a.node#2 and node#11x"), "");
  EXPECT_EQ(explained("load of args[1].count"), "args:5000::main ");
  EXPECT_EQ(explained("load of q->args"), "");
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
