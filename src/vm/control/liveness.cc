#include "vm/control/liveness.h"

#include <algorithm>

namespace slalom::vm {
namespace {

// More than a spin loop reads.
constexpr size_t kMostReads = 64;

bool same(const Access& a, const Access& b) {
  return a.pc_bits == b.pc_bits && a.address_bits == b.address_bits && a.value == b.value;
}

// Returns true if `store` is the second half of an instruction that stores what it has just read.
bool stores_what_it_read(const Access& read, const Access& store) {
  return same(read, store) && read.size == store.size && !read.wrote && store.wrote;
}

void note_read(std::vector<uint64_t>& reads, const Access& access) {
  if (access.size == 0) return;
  const uint64_t address = access.address().raw;
  if (std::ranges::find(reads, address) == reads.end()) reads.push_back(address);
}

}  // namespace

void Liveness::on_accesses(std::span<const Access> accesses) {
  if (last_pause_ != 0)
    for (const Access& access : accesses)
      if (!access.wrote && since_pause_.size() < kMostReads) note_read(since_pause_, access);
  if (accesses.empty()) return;
  // A waiting loop changes nothing, so accesses before the last store that changed something do not matter.
  const auto stores_nothing_new = [&](size_t i) {
    return stores_what_it_read(i > 0 ? accesses[i - 1] : last_, accesses[i]);
  };
  constexpr size_t kWindow = size_t{kLoop} * kRounds;
  size_t first = accesses.size();
  while (first > 0 && (!accesses[first - 1].wrote || stores_nothing_new(first - 1))) --first;
  if (first > 0) {
    recent_.clear();
    idle_store_ = {};
  }
  for (const Access& access : accesses.subspan(first)) {
    if (access.size == 0) continue;  // a call or return
    if (access.wrote)
      idle_store_ = access;
    else
      recent_.push_back(access);
  }
  last_ = accesses.back();
  if (recent_.size() > 2 * kWindow)
    recent_.erase(recent_.begin(), recent_.end() - static_cast<ptrdiff_t>(kWindow));
}

bool Liveness::changed_nothing(uint64_t pc, uint64_t address) const {
  return idle_store_.size != 0 && idle_store_.pc().raw == pc && idle_store_.address().raw == address;
}

void Liveness::examine(uint64_t in_a_row) {
  if (live()) find_loop();
  if (live() && in_a_row >= kStarvation) stop(Why::Starvation);
}

bool Liveness::end_starvation() {
  if (why_ != Why::Starvation || others_ran_ < kPatience) return false;
  revive();
  return true;
}

void Liveness::find_loop() {
  const std::span<const Access> recent(recent_);
  for (size_t period = 1; period <= kLoop && period * kRounds <= recent.size(); ++period) {
    const std::span<const Access> tail = recent.last(period * kRounds);
    if (!same(tail[tail.size() - 1], tail[tail.size() - 1 - period])) continue;
    bool loop = true;
    for (size_t i = period; loop && i < tail.size(); ++i) loop = same(tail[i], tail[i - period]);
    if (!loop) continue;
    reads_.clear();
    for (const Access& access : tail.last(period)) note_read(reads_, access);
    recent_.clear();
    stop(Why::Loop);
    return;
  }
}

void Liveness::on_pause(uint64_t retired) {
  const bool near = last_pause_ != 0 && retired - last_pause_ <= kPauseWindow;
  last_pause_ = retired;
  if (near && !since_pause_.empty()) {
    reads_ = since_pause_;
    stop(Why::Pause);
  }
  since_pause_.clear();
}

void Liveness::on_write(uint64_t address, unsigned size) {
  const auto overlaps = [&](uint64_t read) { return address < read + 8 && read < address + size; };
  if (std::ranges::any_of(reads_, overlaps)) revive();
}

void Liveness::revive() {
  why_ = Why::Live;
  others_ran_ = 0;
  reads_.clear();
}

void Liveness::stop(Why why) {
  why_ = why;
  others_ran_ = 0;
  ++counts_[static_cast<size_t>(why)];
}

}  // namespace slalom::vm
