#include "detect/kernels/kernel_heap.h"

#include <algorithm>

#include "base/hash.h"
#include "detect/core/titles.h"

namespace slalom {
namespace {

constexpr uint64_t kMostBytes = 1 << 16;  // bytes of an object that are watched
constexpr uint64_t kMostPages = 1 << 22;  // bytes of one allocation of pages
constexpr size_t kMostMisuses = 64;       // in one execution
// The kernel's image and modules: no heap from here on.
constexpr uint64_t kKernelImage = 0xffff'ffff'8000'0000;

}  // namespace

bool KernelHeapDetector::is_allocator(Place pc) {
  uint8_t& known = allocator_[pc.raw];
  if (known == 0) known = is_allocator_function(function_name(names_.place(pc))) ? 2 : 1;
  return known == 2;
}

// Checks both the called functions and the places of their calls. A function that ends in a jump to the
// allocator appears as called, although the allocator runs.
bool KernelHeapDetector::in_allocator(Place pc, uint32_t path) {
  const auto is_its = [&](Place place) { return is_allocator(place); };
  return std::ranges::any_of(state_.context.frames(pc, path), is_its) ||
         std::ranges::any_of(state_.context.functions(path), is_its);
}

uint32_t KernelHeapDetector::cache_number(std::string_view name) {
  const auto number = static_cast<size_t>(std::find(caches_.begin(), caches_.end(), name) - caches_.begin());
  if (number == caches_.size()) caches_.emplace_back(name);
  return static_cast<uint32_t>(number);
}

void KernelHeapDetector::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  KernelContext::Where where = state_.context.where(header.agent);
  for (const Access& access : accesses) {
    if (!is_memory(access.op())) {
      where = state_.context.on_transfer(header.agent, access);
      continue;
    }
    const ObjectId address = access.address();
    if (address.raw >= kKernelImage || !state_.may_have_object(address.raw)) continue;
    const uint32_t* cell = state_.cells.find(address.raw / 8);
    if (cell == nullptr || *cell == 0) continue;
    const Object& object = state_.objects[*cell - 1];
    if (object.live || object.readable || in_allocator(access.pc(), where.path)) continue;
    misused({.kind = BugKind::UseAfterFree,
             .object = object,
             .address = address,
             .use = {{Step{header.first_step.raw + access.retired}, header.agent, access.pc(), access.op()},
                     where.path},
             .value = access.value,
             .size = static_cast<uint32_t>(access.size),
             .locks = where.locks,
             .writes = access.wrote != 0 || access.op() == OpKind::Store});
  }
}

void KernelHeapDetector::on_event(const Event& event) {
  if (event.op == OpKind::Alloc && event.state == kMayStay) return;
  if (event.op == OpKind::Alloc) return allocated(event);
  if (event.op == OpKind::Free) return freed(event);
  state_.context.on_event(event);
}

// The rest of the last cell belongs to no other object, because objects are aligned.
void KernelHeapDetector::add(const Object& object) {
  state_.objects.push_back(object);
  const uint64_t end = object.address.raw + std::clamp<uint64_t>(object.size, 1, kMostBytes);
  for (uint64_t cell = object.address.raw / 8; cell * 8 < end; ++cell) {
    state_.cells[cell] = static_cast<uint32_t>(state_.objects.size());
    state_.note_page(cell * 8);
  }
}

void KernelHeapDetector::allocated(const Event& event) {
  const auto size = static_cast<uint64_t>(std::max<int64_t>(event.value, 0));
  if (event.state == kOfPages) {
    const uint64_t end = event.object.raw + std::min(size, kMostPages);
    for (uint64_t cell = event.object.raw / 8; cell * 8 < end; ++cell)
      if (uint32_t* known = state_.cells.find(cell)) *known = 0;
    return;
  }
  add({.address = event.object,
       .size = size,
       .cache = cache_number(event.text),
       .live = true,
       .alloc = {Site::of(event), state_.context.where(event.agent).path}});
}

void KernelHeapDetector::freed(const Event& event) {
  const KernelContext::Where where = state_.context.where(event.agent);
  const Moment now{Site::of(event), where.path};
  const uint32_t* cell = state_.cells.find(event.object.raw / 8);
  Object* known = cell == nullptr || *cell == 0 ? nullptr : &state_.objects[*cell - 1];
  Misuse misuse{.kind = BugKind::DoubleFree, .address = event.object, .use = now, .locks = where.locks};
  if (known != nullptr && known->address == event.object) {
    misuse.object = *known;
    if (!known->live) return misused(misuse);
    known->live = false;
    known->readable = event.state != 0;
    known->free = now;
    return;
  }
  Object object{.address = event.object,
                .size = static_cast<uint64_t>(std::max<int64_t>(event.value, 0)),
                .cache = cache_number(event.text),
                .readable = event.state != 0,
                .free = now};
  if (known != nullptr && known->live) object = *known;
  const bool no_heap = event.object.raw >= kKernelImage && event.text == "kfree";
  if ((known != nullptr && known->live) || no_heap) {
    misuse.object = object;
    misuse.object.free = {};
    return misused(misuse);
  }
  add(object);
}

void KernelHeapDetector::misused(Misuse misuse) {
  if (state_.misuses.size() >= kMostMisuses) return;
  uint8_t& seen = state_.seen[combine(misuse.use.site.pc.raw, misuse.object.address.raw, misuse.kind)];
  if (seen == 0) state_.misuses.push_back(misuse);
  seen = 1;
}

Verdict KernelHeapDetector::verdict(const Misuse& misuse) const {
  const Object& object = misuse.object;
  const bool is_free = misuse.kind == BugKind::DoubleFree;
  const bool invalid = is_free && !object.free.site.agent;
  const std::string user = telling_function(misuse.use, state_.context, names_);
  const std::string freer =
      object.free.site.agent ? telling_function(object.free, state_.context, names_) : "";
  Verdict verdict{
      .kind = misuse.kind, .severity = Severity::Failure, .title = {}, .detail = {}, .evidence = {}};
  const std::string what =
      fmt::format("{} of {} bytes at {:#x}", caches_[object.cache], object.size, object.address.raw);
  if (invalid) {
    const std::string place = names_.object(misuse.address);
    const bool inside = object.live;
    verdict.title = fmt::format("invalid free: {} frees {}", user,
                                inside ? "the middle of an object" : generic_name(place));
    verdict.detail = inside ? fmt::format("{:#x} lies {} bytes after the start of an object: {}. ",
                                          misuse.address.raw, misuse.address.raw - object.address.raw, what)
                            : fmt::format("{} was never allocated. ", place);
  } else {
    verdict.title = is_free ? fmt::format("double free: in {}, freed before in {}", user, freer)
                            : fmt::format("use after free: in {}, freed in {}", user, freer);
    verdict.detail = fmt::format("The object: {}. ", what);
  }
  const auto tell = [&](const Moment& moment, std::string_view did, const std::string& text) {
    verdict.detail += fmt::format("{} {}. ", did, moment_text(moment, state_.context, names_));
    verdict.evidence.push_back(moment.site.evidence(text));
  };
  if (object.alloc.site.agent)
    tell(object.alloc, "Allocated", "allocates the object");
  else if (!invalid)
    verdict.detail += "Allocated before the flows began. ";
  if (object.free.site.agent) tell(object.free, "Freed", "frees the object");
  const std::string locks = state_.context.locks_text(misuse.locks, names_);
  if (is_free) {
    tell(misuse.use, invalid ? "Freed" : "Freed again", invalid ? "frees it" : "frees it again");
  } else {
    const std::string access = fmt::format(
        "{} of {} byte{} at its offset {:#x}, value {:#x}", misuse.writes ? "store" : "load", misuse.size,
        misuse.size == 1 ? "" : "s", misuse.address.raw - object.address.raw, misuse.value);
    tell(misuse.use, fmt::format("Then a {},", access), fmt::format("uses it: {}", access));
  }
  verdict.detail += fmt::format("Held there: {}.", locks);
  return verdict;
}

void KernelHeapDetector::on_end(const Outcome&) {
  for (const Misuse& misuse : state_.misuses) report(verdict(misuse));
}

}  // namespace slalom
