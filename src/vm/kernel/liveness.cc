#include "vm/kernel/liveness.h"

#include <algorithm>

namespace slalom::vm {
namespace {

// More than a spin loop reads.
constexpr size_t kMostReads = 64;

bool same(const Access& a, const Access& b) {
  return a.pc_bits == b.pc_bits && a.address_bits == b.address_bits && a.value == b.value;
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
  // A loop that waits does not write: whatever comes before a write is of no interest.
  constexpr size_t kWindow = size_t{kLoop} * kRounds;
  size_t first = accesses.size();
  while (first > 0 && !accesses[first - 1].wrote) --first;
  if (first > 0) recent_.clear();
  for (const Access& access : accesses.subspan(first))
    if (access.size != 0) recent_.push_back(access);  // else a call or return
  if (recent_.size() > 2 * kWindow)
    recent_.erase(recent_.begin(), recent_.end() - static_cast<ptrdiff_t>(kWindow));
}

void Liveness::look(uint64_t in_a_row) {
  if (live()) look_for_loop();
  if (live() && in_a_row >= kStarvation) stop(Why::Starvation);
}

bool Liveness::look_at_others() {
  if (why_ != Why::Starvation || others_ < kPatience) return false;
  revive();
  return true;
}

void Liveness::look_for_loop() {
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

void Liveness::revive() {
  why_ = Why::Live;
  others_ = 0;
  reads_.clear();
}

void Liveness::stop(Why why) {
  why_ = why;
  others_ = 0;
  ++counts_[static_cast<size_t>(why)];
}

}  // namespace slalom::vm
