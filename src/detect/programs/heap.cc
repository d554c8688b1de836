#include "detect/programs/heap.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "detect/core/titles.h"

namespace slalom {

void HeapDetector::note(const Event& event) {
  switch (event.op) {
    case OpKind::Alloc:
      state_.objects[event.object.raw] = {Site::of(event), {}};
      return;
    case OpKind::Free:
      if (event.state != 0) {
        state_.objects[event.object.raw].free = Site::of(event);
        return;
      }
      break;
    case OpKind::HeapUse:
      if (event.state != 0) return;
      break;
    default:
      return;
  }
  const HeapObject history = state_.objects[event.object.raw];
  // The key includes the object, because the title includes its name.
  uint8_t& seen = state_.seen[combine(event.pc.raw, history.free.pc.raw, event.object.raw, event.op)];
  if (seen == 0) state_.misuses.push_back({event.object, Site::of(event), history});
  seen = 1;
}

void HeapDetector::on_end(const Outcome&) {
  for (const auto& [object, use, history] : state_.misuses) {
    const bool twice = use.op == OpKind::Free;
    const std::string name = names_.object(object);
    const std::string freed = history.free.agent ? names_.place(history.free.pc) : "an unknown place";
    Verdict verdict;
    verdict.kind = twice ? BugKind::DoubleFree : BugKind::UseAfterFree;
    verdict.title =
        fmt::format("{} of {}: {} at {}, freed at {}", twice ? "double free" : "use after free",
                    generic_name(name), twice ? "freed again" : "used", names_.place(use.pc), freed);
    if (history.alloc.agent) {
      verdict.detail = fmt::format("{} was allocated by {} at {}. ", name, names_.agent(history.alloc.agent),
                                   names_.place(history.alloc.pc));
      verdict.evidence.push_back(history.alloc.evidence(fmt::format("allocates {}", name)));
    }
    if (history.free.agent) {
      verdict.detail += fmt::format("{} freed it at {}. ", names_.agent(history.free.agent), freed);
      verdict.evidence.push_back(history.free.evidence(fmt::format("frees {}", name)));
    }
    verdict.detail += fmt::format("{} {} it at {} after that.", names_.agent(use.agent),
                                  twice ? "freed" : "used", names_.place(use.pc));
    verdict.evidence.push_back(use.evidence(fmt::format("{} {}", twice ? "frees again" : "uses", name)));
    report(std::move(verdict));
  }
}

void LeakDetector::on_event(const Event& event) {
  if (event.op == OpKind::Alloc && event.state != 0) return;  // the program need not free it
  if (event.op == OpKind::Alloc) state_.objects[event.object.raw] = {Site::of(event), false};
  if (event.op == OpKind::Free) state_.objects[event.object.raw].freed = true;
}

void LeakDetector::on_end(const Outcome& outcome) {
  // An execution that failed or was cut off had no chance to free.
  if (!std::holds_alternative<Exited>(outcome)) return;
  struct Leaked {
    ObjectId object;
    Site alloc;
  };
  std::map<std::string, std::vector<Leaked>> by_title;
  state_.objects.for_each([&](uint64_t object, const LeakState::Object& entry) {
    if (entry.freed) return;
    const ObjectId id{object};
    by_title[fmt::format("leak of {} allocated at {}", generic_name(names_.object(id)),
                         names_.place(entry.alloc.pc))]
        .push_back({id, entry.alloc});
  });
  for (auto& [title, leaked] : by_title) {
    std::sort(leaked.begin(), leaked.end(), [](const Leaked& a, const Leaked& b) {
      return std::pair(a.alloc.step, a.object) < std::pair(b.alloc.step, b.object);
    });
    Verdict verdict{BugKind::Leak, Severity::Suspicion, title, {}, {}};
    verdict.detail = fmt::format("{} of them {} still allocated at the end.", leaked.size(),
                                 leaked.size() == 1 ? "is" : "are");
    const Leaked& first = leaked.front();
    verdict.evidence.push_back(
        first.alloc.evidence(fmt::format("allocates {}", names_.object(first.object))));
    report(std::move(verdict));
  }
}

}  // namespace slalom
