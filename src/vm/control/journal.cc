#include "vm/control/journal.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace slalom::vm {

Journal& Journal::begin(EventSink& reader) {
  reader_ = &reader;
  is_open_ = true;
  made_ = counted_ = 0;
  accesses_.clear();
  parts_.clear();
  texts_.clear();
  return *this;
}

void Journal::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  if (is_open_ && has_too_many(accesses)) {
    communication_.add_instructions(accesses_);
    read_out(false);
  }
  if (!is_open_) {
    communication_.add_instructions(accesses);
    return reader_->on_accesses(accesses, header);
  }
  // If the CPU stopped only for a moment, these accesses continue the last part.
  uint64_t later = 0;
  const auto goes_on = [&](const Part& last) {
    later = header.first_step.raw - last.header.first_step.raw;
    return last.event.op == OpKind::None && last.header.agent == header.agent &&
           last.header.thread == header.thread &&
           later + accesses.back().retired <= std::numeric_limits<uint16_t>::max();
  };
  const size_t first = accesses_.size();
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
  if (!parts_.empty() && goes_on(parts_.back())) {
    for (size_t i = first; i < accesses_.size(); ++i) accesses_[i].retired += later;
    parts_.back().end = accesses_.size();
  } else {
    parts_.push_back({header, accesses_.size(), {}, 0});
  }
}

// Calls and returns do not count, because a CPU may emit one twice where it stops. Usually there are few
// enough entries even with them, and no counting is needed.
bool Journal::has_too_many(std::span<const Access> more) {
  if (accesses_.size() + more.size() <= most_) return false;
  const auto count = [](std::span<const Access> all) {
    return static_cast<size_t>(
        std::ranges::count_if(all, [](const Access& access) { return access.size != 0; }));
  };
  made_ += count(std::span(accesses_).subspan(counted_));
  counted_ = accesses_.size();
  return made_ + count(more) > most_;
}

void Journal::on_event(const Event& event) {
  if (!is_open_) return reader_->on_event(event);
  if (parts_.empty() || parts_.back().event.op != OpKind::None)
    parts_.push_back({{}, accesses_.size(), {}, 0});
  parts_.back().event = event;
  parts_.back().text = texts_.size();
  texts_ += event.text;
}

void Journal::on_end(const Outcome& outcome) {
  if (is_open_) {
    index_shared();
    read_out(true);
    noted_.fill({});
  }
  reader_->on_end(outcome);
}

void Journal::read_out(bool marks) {
  is_open_ = false;
  size_t begin = 0;
  for (Part& part : parts_) {
    // In pieces, so that each piece stays in the host's nearest cache for all readers.
    while (part.end != begin) {
      const std::span<Access> piece(accesses_.data() + begin, std::min(part.end - begin, kPiece));
      if (marks) mark(piece);
      reader_->on_accesses(piece, part.header);
      begin += piece.size();
    }
    if (part.event.op == OpKind::None) continue;
    part.event.text = std::string_view(texts_).substr(part.text, part.event.text.size());
    reader_->on_event(part.event);
  }
}

[[gnu::always_inline]] inline Journal::Use Journal::use_of(uint64_t granule) const {
  if ((sieve_[granule % kSieve / 64] >> granule % 64 & 1) == 0) return Use::Alone;
  const Use* found = shared_.find(granule);
  return found == nullptr ? Use::Alone : *found;
}

void Journal::index_shared() {
  shared_.clear();
  sieve_.fill(0);
  for (const uint64_t granule : communication_.shared()) {
    shared_[granule] = communication_.is_used_by_cpus(granule) ? Use::ByCpus : Use::ByContexts;
    sieve_[granule % kSieve / 64] |= uint64_t{1} << granule % 64;
  }
}

void Journal::mark(std::span<Access> accesses) {
  for (Access& access : accesses) {
    if (access.size == 0) continue;  // a call or return
    const uint64_t granule = Communication::first_granule(access);
    Use most = use_of(granule);
    if (!Communication::is_in_one_granule(access)) [[unlikely]]
      for (uint64_t next = granule + 1; next <= Communication::last_granule(access); ++next)
        most = std::max(most, use_of(next));
    if (most == Use::Alone) access.is_private = 1;
    if (most != Use::ByCpus && !(most == Use::ByContexts && communication_.is_interruptible(access.pc())))
      continue;
    // The same instructions usually come again soon.
    Place& noted = noted_[access.pc_bits % noted_.size()];
    if (std::exchange(noted, access.pc()) != access.pc()) communication_.add_point(access.pc());
  }
}

}  // namespace slalom::vm
