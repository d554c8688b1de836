#include "process/added_modules.h"

#include <algorithm>

namespace slalom {
namespace {

using preload::Channel;
using preload::Range;
using preload::ScopedCode;

// Adds pieces, moved down by `distance`, and keeps `all` sorted.
template <typename Piece>
void merge(std::vector<Piece>& all, const std::vector<Piece>& more, uint64_t distance) {
  for (Piece piece : more) {
    piece.begin -= distance;
    piece.end -= distance;
    all.push_back(piece);
  }
  std::ranges::sort(all, {}, &Piece::begin);
}

void write_wrappers(Channel& channel, const std::vector<Range>& wrappers) {
  channel.wrapper_count = static_cast<uint32_t>(std::min<size_t>(wrappers.size(), preload::kMostWrappers));
  std::copy_n(wrappers.begin(), channel.wrapper_count, channel.wrappers);
}

void write_scope(Channel& channel, const std::vector<ScopedCode>& scoped) {
  channel.scoped_count = static_cast<uint32_t>(scoped.size());
  std::ranges::copy(scoped, channel.scoped);
}

// Removes the target's cached facts about code that was loaded there before.
void forget_code(Channel& channel, Range range) {
  const auto lies_there = [&](uint64_t pc) { return pc >= range.begin && pc < range.end; };
  for (uint64_t& pc : channel.outside)
    if (lies_there(pc)) pc = 0;
  for (preload::FrameSize& frame : channel.frames)
    if (lies_there(frame.pc)) frame = {};
}

}  // namespace

Result<void> AddedModules::describe(Channel& channel, std::vector<Range> wrappers,
                                    std::vector<ScopedCode> scoped) {
  TRY(fit_scope(scoped));
  wrappers_ = std::move(wrappers);
  scoped_ = std::move(scoped);
  user_count_ = channel.user_count;
  last_.clear();
  std::fill_n(channel.outside, preload::kMostOutside, 0);
  forget(channel);
  return {};
}

void AddedModules::begin_execution(Channel& channel) {
  if (any()) forget(channel);
}

void AddedModules::forget(Channel& channel) {
  moved_.clear();
  instances_.clear();
  all_wrappers_ = wrappers_;
  all_scoped_ = scoped_;
  channel.user_count = user_count_;
  write_wrappers(channel, wrappers_);
  write_scope(channel, scoped_);
}

Result<void> AddedModules::add(Channel& channel, const std::string& path, ProgramNames& names,
                               ProgramScope& scope, const ProgramScope::Memory& memory) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  const Range range = channel.loaded.range;
  if (range.begin >= range.end || range.end - range.begin > kMostBytes ||
      moved_.size() >= preload::kMostModules)
    return {};  // the module then has no names
  const uint64_t size = range.end - range.begin;
  const uint64_t begin = names.add_module(path, ++instances_[path], size);
  const uint64_t distance = begin - range.begin;
  const auto [known, is_new] = known_.try_emplace(begin);
  if (is_new) {
    known->second.wrappers = names.wrappers(begin);
    const Zygote::Module module{path, begin, begin + size, true};
    known->second.scoped = scope.find_in(std::span(&module, 1), names, [&](Range code) {
      return memory({code.begin - distance, code.end - distance});
    });
  }
  if (std::exchange(last_[range.begin], begin) != begin) forget_code(channel, range);
  moved_.push_back({range.begin, size, distance});
  if (channel.user_count < preload::kMostModules) channel.user[channel.user_count++] = range;
  merge(all_wrappers_, known->second.wrappers, distance);
  write_wrappers(channel, all_wrappers_);
  if (known->second.scoped.empty()) return {};
  merge(all_scoped_, known->second.scoped, distance);
  TRY(fit_scope(all_scoped_));
  write_scope(channel, all_scoped_);
  return {};
}

}  // namespace slalom
