#include "vm/control/communication.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kReaders = 0xffff;  // bits of readers; those of writers are above

uint32_t contexts(uint32_t users) {
  return (users | users >> 16) & kReaders;
}
bool is_one_bit(uint32_t bits) {
  return (bits & (bits - 1)) == 0;
}
bool is_shared(uint32_t users) {
  return users > kReaders && !is_one_bit(contexts(users));
}
// True if different CPUs communicate; interrupts count as their CPU.
bool communicates(uint32_t users) {
  const uint32_t all = contexts(users);
  return users > kReaders && !is_one_bit((all | all >> kMostCpus) & ((1u << kMostCpus) - 1));
}

}  // namespace

inline Communication::Cell& Communication::cell(uint64_t granule) {
  const uint64_t page = granule / kPageCells;
  if (page >= pages_.size()) [[unlikely]]
    pages_.resize(page + 1);
  if (pages_[page] == nullptr) [[unlikely]]
    pages_[page] = new (arena_.take(sizeof(Page))) Page{};
  return (*pages_[page])[granule % kPageCells];
}

uint32_t Communication::users(uint64_t granule) const {
  const uint64_t page = granule / kPageCells;
  if (page >= pages_.size() || pages_[page] == nullptr) return 0;
  const Cell cell = (*pages_[page])[granule % kPageCells];
  return cell >> 32 == round_ ? static_cast<uint32_t>(cell) : 0;
}

void Communication::begin_use(Cell& cell, uint64_t granule, Cell bit) {
  if (cell >> 32 != round_) {
    cell = uint64_t{round_} << 32;
    state_.used.push_back({granule, 0});
  }
  const bool was_shared = is_shared(static_cast<uint32_t>(cell));
  cell |= bit;
  if (!was_shared && is_shared(static_cast<uint32_t>(cell))) state_.shared.push_back(granule);
}

[[gnu::always_inline]] inline void Communication::use(Cell& cell, uint64_t granule, Cell bit) {
  const Cell wanted = uint64_t{round_} << 32 | bit;
  if ((cell & (uint64_t{0xffffffff} << 32 | bit)) != wanted) begin_use(cell, granule, bit);
}

void Communication::add(unsigned context, std::span<const Access> accesses) {
  // The cells of memory are rarely in the cache, so the cells of several accesses are fetched at once.
  std::array<Cell*, 32> cells;
  const Cell reads = Cell{1} << context, writes = reads << kContexts;
  while (!accesses.empty()) {
    const std::span<const Access> some = accesses.first(std::min(accesses.size(), cells.size()));
    accesses = accesses.subspan(some.size());
    for (size_t i = 0; i < some.size(); ++i) {
      cells[i] = &cell(first_granule(some[i]));
      __builtin_prefetch(cells[i]);
    }
    for (size_t i = 0; i < some.size(); ++i) {
      const Access& access = some[i];
      if (access.size == 0) continue;  // a call or return
      const Cell bit = access.wrote ? writes : reads;
      use(*cells[i], first_granule(access), bit);
      if (is_in_one_granule(access)) [[likely]]
        continue;
      for (uint64_t granule = first_granule(access) + 1; granule <= last_granule(access); ++granule)
        use(cell(granule), granule, bit);
    }
  }
}

void Communication::add_instructions(std::span<const Access> accesses) {
  has_noted_ = true;
  for (const Access& access : accesses) {
    if (access.size == 0) continue;
    for (uint64_t granule = first_granule(access); granule <= last_granule(access); ++granule) {
      // A hash collision would hide one point of one execution. A search makes thousands of executions.
      const uint64_t what = fold(granule, access.pc_bits);
      uint32_t& noted = noted_[what % noted_.size()];
      const auto mark = static_cast<uint32_t>(what >> 32);
      if (std::exchange(noted, mark) != mark) state_.instructions.push_back({access.pc().raw, granule});
    }
  }
}

void Communication::clear() {
  if (++round_ == 0) {
    pages_.clear();
    arena_.clear();
    round_ = 1;
  }
  state_.used.clear();
  state_.shared.clear();
  state_.instructions.clear();
  state_.points.clear();
  if (std::exchange(has_noted_, false)) noted_.fill(0);
}

bool Communication::is_used_by_cpus(uint64_t granule) const {
  return communicates(users(granule));
}

std::vector<Place> Communication::points() const {
  std::vector<Place> points = state_.points;
  for (const State::Instruction& one : state_.instructions)
    if (is_used_by_cpus(one.granule) || (is_interruptible(Place{one.pc}) && is_shared(users(one.granule))))
      points.push_back(Place{one.pc});
  std::ranges::sort(points);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

Communication::State Communication::save() const {
  State saved = state_;
  for (State::Used& used : saved.used) used.users = users(used.granule);
  return saved;
}

void Communication::restore(const State& state) {
  clear();
  state_ = state;
  for (const State::Used& used : state_.used) cell(used.granule) = uint64_t{round_} << 32 | used.users;
}

}  // namespace slalom::vm
