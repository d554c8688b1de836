#include "vm/replay/history.h"

namespace slalom::vm {

void History::begin(HistoryPoint here) {
  clear();
  checkpoints_[here] = execution_.take();
}

void History::clear() {
  for (const auto& [place, id] : checkpoints_) execution_.drop(id);
  checkpoints_.clear();
}

void History::add(HistoryPoint here) {
  if (checkpoints_.contains(here)) return;
  checkpoints_[here] = execution_.take();
  if (checkpoints_.size() > most_) thin_out(here);
}

HistoryPoint History::latest(HistoryPoint place) const {
  auto after = checkpoints_.upper_bound(place);
  CHECK(after != checkpoints_.begin(), "there is no history at instruction {}", place.executed);
  return std::prev(after)->first;
}

void History::restore(HistoryPoint checkpoint) {
  execution_.restore(checkpoints_.at(checkpoint));
}

// Drops the least useful checkpoint: the one whose gap would be smallest in relation to its distance.
void History::thin_out(HistoryPoint here) {
  auto least = checkpoints_.end();
  double least_loss = 0;
  for (auto at = std::next(checkpoints_.begin()); at != checkpoints_.end(); ++at) {
    const auto next = std::next(at);
    if (at->first == here || next == checkpoints_.end()) continue;
    const uint64_t gap = next->first.executed - std::prev(at)->first.executed;
    const uint64_t place = at->first.executed;
    const uint64_t distance = place < here.executed ? here.executed - place : place - here.executed;
    const double loss = static_cast<double>(gap) / static_cast<double>(distance + 1);
    if (least != checkpoints_.end() && loss >= least_loss) continue;
    least = at;
    least_loss = loss;
  }
  if (least == checkpoints_.end()) return;
  execution_.drop(least->second);
  checkpoints_.erase(least);
}

}  // namespace slalom::vm
