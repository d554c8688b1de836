#include "detect/kernels/kernel_leak.h"

#include <algorithm>
#include <map>

namespace slalom {

void KernelLeakDetector::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  for (const Access& access : accesses)
    if (!is_memory(access.op())) state_.context.on_transfer(header.agent, access);
}

void KernelLeakDetector::on_event(const Event& event) {
  if (event.op == OpKind::Free) {
    const uint32_t* known = state_.index.find(event.object.raw);
    if (known != nullptr && *known != 0) state_.objects[*known - 1].live = false;
  }
  if (event.op != OpKind::Alloc || event.state == kOfPages) return state_.context.on_event(event);
  if (event.state == kMayStay) {
    state_.judges = true;
    state_.may_stay[event.pc.raw] = static_cast<uint64_t>(std::max<int64_t>(event.value, 0));
    return;
  }
  const auto cache = std::find(caches_.begin(), caches_.end(), event.text);
  const auto number = static_cast<uint32_t>(cache - caches_.begin());
  if (cache == caches_.end()) caches_.emplace_back(event.text);
  state_.objects.push_back({event.object,
                            static_cast<uint64_t>(std::max<int64_t>(event.value, 0)),
                            number,
                            true,
                            {Site::of(event), state_.context.where(event.agent).path}});
  state_.index[event.object.raw] = static_cast<uint32_t>(state_.objects.size());
}

void KernelLeakDetector::on_end(const Outcome& outcome) {
  if (!state_.judges || !std::holds_alternative<Exited>(outcome)) return;
  std::map<uint64_t, std::vector<const KernelLeakState::Object*>> by_place;
  for (const KernelLeakState::Object& object : state_.objects)
    if (object.live) by_place[object.alloc.site.pc.raw].push_back(&object);
  for (const auto& [place, left] : by_place) {
    const uint64_t* known = state_.may_stay.find(place);
    const uint64_t may_stay = known == nullptr ? 0 : *known;
    if (left.size() <= may_stay) continue;
    const KernelLeakState::Object& last = *left.back();
    Verdict verdict{
        BugKind::Leak,
        Severity::Failure,
        fmt::format("leak: memory allocated in {}", telling_function(last.alloc, state_.context, names_)),
        {},
        {}};
    verdict.detail =
        fmt::format("{} of {} bytes stay{} allocated, where calls one after the other leave at most {}. ",
                    left.size() == 1 ? fmt::format("One {}", caches_[last.cache])
                                     : fmt::format("{} {}", left.size(), caches_[last.cache]),
                    last.size, left.size() == 1 ? "s" : "", may_stay);
    for (const KernelLeakState::Object* object : left) {
      verdict.detail += fmt::format("{:#x} was allocated {}. ", object->address.raw,
                                    moment_text(object->alloc, state_.context, names_));
      verdict.evidence.push_back(object->alloc.site.evidence("allocates what stays"));
    }
    verdict.detail.pop_back();
    report(std::move(verdict));
  }
}

}  // namespace slalom
