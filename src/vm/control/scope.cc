#include "vm/control/scope.h"

#include <algorithm>

namespace slalom::vm {

void remove_places_in(std::span<const CodeRange> code, std::vector<Place>& places) {
  auto range = code.begin();
  std::erase_if(places, [&](Place place) {
    while (range != code.end() && range->end <= place.raw) ++range;
    return range != code.end() && range->begin <= place.raw;
  });
}

void Scope::watch(FunctionWatch& watch) const {
  entries_.for_each([&](uint64_t entry, uint8_t) { watch.add(entry); });
}

bool Scope::is_inside(const FunctionWatch::Open& open, uint64_t pointer, uint64_t end) const {
  for (auto at = open.lower_bound(pointer); at != open.end() && at->first < end; ++at)
    for (auto frame = at->second.rbegin(); frame != at->second.rend(); ++frame)
      if (const uint8_t* kind = entries_.find(frame->function)) return *kind != 1;
  return false;
}

}  // namespace slalom::vm
