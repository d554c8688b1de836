#include "trace/knowledge.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace slalom {

bool merge_places(std::vector<Place>& places, const std::vector<Place>& more) {
  if (std::includes(places.begin(), places.end(), more.begin(), more.end())) return false;
  if (places.empty()) {
    places = more;
    return true;
  }
  const std::vector<Place> known = std::exchange(places, {});
  std::ranges::set_union(known, more, std::back_inserter(places));
  return true;
}

void Knowledge::merge(const Knowledge& other) {
  merge_places(places, other.places);
  merge_places(racing, other.racing);
  merge_places(atomics, other.atomics);
  guessed = guessed || other.guessed;
}

void Knowledge::add_race(const Verdict& verdict) {
  if (verdict.kind != BugKind::DataRace) return;
  std::vector<Place> accesses;
  for (const Evidence& evidence : verdict.evidence) accesses.push_back(evidence.pc);
  std::ranges::sort(accesses);
  accesses.erase(std::unique(accesses.begin(), accesses.end()), accesses.end());
  merge_places(racing, accesses);
}

std::vector<Place> Knowledge::ordered_atomics() const {
  std::vector<Place> ordered;
  std::ranges::set_difference(atomics, places, std::back_inserter(ordered));
  return ordered;
}

void Knowledge::clear() {
  places.clear();
  racing.clear();
  atomics.clear();
  guessed = false;
}

}  // namespace slalom
