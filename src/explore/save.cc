#include "explore/save.h"

#include <algorithm>

namespace slalom {
namespace {

void encode_options(ByteWriter& out, std::span<const Option> options) {
  out.u64(options.size());
  for (const Option& option : options) {
    encode(out, option.agent);
    out.u8(static_cast<uint8_t>(option.op.kind));
    out.u64(option.op.object.raw);
  }
}

void decode_options(ByteReader& in, std::vector<Option>& options) {
  for (uint64_t n = in.count(); n > 0; --n) {
    Option& option = options.emplace_back();
    decode(in, option.agent);
    const uint8_t op = in.u8();
    if (op >= kOpKinds) in.fail();
    option.op.kind = op < kOpKinds ? static_cast<OpKind>(op) : OpKind::None;
    option.op.object.raw = in.u64();
  }
}

void encode_hint(ByteWriter&, const std::monostate&) {}
void decode_hint(ByteReader&, std::monostate&) {}

void encode_hint(ByteWriter& out, const DfsHint& hint) {
  out.u64(hint.cost);
}
void decode_hint(ByteReader& in, DfsHint& hint) {
  hint.cost = in.u64();
}

void encode_hint(ByteWriter& out, const DporHint& hint) {
  encode(out, hint.next);
  out.u64(hint.values.size());
  for (const uint32_t value : hint.values) out.u64(value);
  encode(out, hint.sleepers);
  out.u8(hint.foreseen);
}
void decode_hint(ByteReader& in, DporHint& hint) {
  decode(in, hint.next);
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) hint.values.push_back(static_cast<uint32_t>(in.u64()));
  decode(in, hint.sleepers);
  hint.foreseen = in.u8() != 0;
}

void encode_hint(ByteWriter& out, const PctHint& hint) {
  out.u64(hint.k);
  out.u8(hint.keeps);
}
void decode_hint(ByteReader& in, PctHint& hint) {
  hint.k = in.u64();
  hint.keeps = in.u8() != 0;
}

void encode_hint(ByteWriter& out, const SurwHint& hint) {
  out.u64(hint.object.raw);
  out.u64(hint.patience);
  out.u64(hint.operations.size());
  for (const auto& [agent, operations] : hint.operations) {
    encode(out, agent);
    out.u64(operations);
  }
}
void decode_hint(ByteReader& in, SurwHint& hint) {
  hint.object.raw = in.u64();
  hint.patience = in.u64();
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    auto& [agent, operations] = hint.operations.emplace_back();
    decode(in, agent);
    operations = in.u64();
  }
}

void encode_hint(ByteWriter& out, const SerialHint& hint) {
  out.u64(hint.branches.size());
  for (const uint64_t branch : hint.branches) out.u64(branch);
}
void decode_hint(ByteReader& in, SerialHint& hint) {
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) hint.branches.push_back(in.u64());
}

// Reads the hint whose kind has this number.
template <size_t kKind = 0>
void decode_hint(ByteReader& in, uint8_t kind, Hint& hint) {
  if constexpr (kKind == std::variant_size_v<Hint>) {
    in.fail();
  } else {
    if (kind != kKind) return decode_hint<kKind + 1>(in, kind, hint);
    decode_hint(in, hint.emplace<kKind>());
  }
}

}  // namespace

void encode(ByteWriter& out, const Pick& pick) {
  encode(out, pick.agent);
  out.u8(pick.data);
  if (pick.data) out.u64(pick.value);
  out.fixed64(pick.digest);
}

void decode(ByteReader& in, Pick& pick) {
  decode(in, pick.agent);
  pick.data = in.u8() != 0;
  pick.value = pick.data ? static_cast<uint32_t>(in.u64()) : 0;
  pick.digest = in.fixed64();
}

void encode(ByteWriter& out, const Touch& touch) {
  out.u64(touch.object.raw);
  out.u64(touch.state);
  encode(out, touch.other);
  out.u8(static_cast<uint8_t>(touch.op));
  out.u8(static_cast<uint8_t>(touch.effect));
}

void decode(ByteReader& in, Touch& touch) {
  touch.object.raw = in.u64();
  touch.state = in.u64();
  decode(in, touch.other);
  const uint8_t op = in.u8();
  const uint8_t effect = in.u8();
  if (op >= kOpKinds || effect > static_cast<uint8_t>(Effect::Write)) in.fail();
  touch.op = op < kOpKinds ? static_cast<OpKind>(op) : OpKind::None;
  touch.effect = static_cast<Effect>(effect % 3);
}

void encode(ByteWriter& out, const Sleeper& sleeper) {
  encode(out, sleeper.agent);
  encode(out, sleeper.touches);
  out.u8(sleeper.fatal);
}

void decode(ByteReader& in, Sleeper& sleeper) {
  decode(in, sleeper.agent);
  decode(in, sleeper.touches);
  sleeper.fatal = in.u8() != 0;
}

void encode(ByteWriter& out, const Execution& execution) {
  encode(out, execution.outcome);
  out.u8(execution.divergence.has_value());
  out.u64(execution.choices.size());
  for (size_t i = 0; i < execution.choices.size(); ++i) {
    const ChoiceRecord& record = execution.choices[i];
    out.u8(static_cast<uint8_t>(record.kind));
    encode(out, record.current);
    out.u64(record.arity);
    encode(out, record.taken);
    const auto options = execution.options_at(i);
    encode_options(out, options);
    const auto touches = execution.touches_at(i);
    out.u64(touches.size());
    for (const Touch& touch : touches) encode(out, touch);
  }
  encode_options(out, execution.blocked);
}

void decode(ByteReader& in, Execution& execution) {
  decode(in, execution.outcome);
  if (in.u8() != 0) execution.divergence.emplace();
  for (uint64_t n = in.count(); n > 0; --n) {
    ChoiceRecord record;
    const uint8_t kind = in.u8();
    if (kind > static_cast<uint8_t>(ChoiceKind::Data)) in.fail();
    record.kind = static_cast<ChoiceKind>(kind);
    decode(in, record.current);
    record.arity = static_cast<uint32_t>(in.u64());
    decode(in, record.taken);
    record.first_option = static_cast<uint32_t>(execution.options.size());
    record.first_touch = static_cast<uint32_t>(execution.touches.size());
    decode_options(in, execution.options);
    for (uint64_t touches = in.count(); touches > 0; --touches) decode(in, execution.touches.emplace_back());
    execution.choices.push_back(record);
  }
  decode_options(in, execution.blocked);
}

void encode(ByteWriter& out, const Task& task) {
  out.u64(task.index);
  encode(out, task.prefix);
  out.fixed64(task.digest);
  out.u8(static_cast<uint8_t>(task.hint.index()));
  std::visit([&](const auto& hint) { encode_hint(out, hint); }, task.hint);
  out.u8(task.arm.has_value());
  if (task.arm) {
    out.u64(task.arm->number);
    out.u64(task.arm->index);
  }
}

void decode(ByteReader& in, Task& task) {
  task.index = in.u64();
  decode(in, task.prefix);
  task.digest = in.fixed64();
  decode_hint(in, in.u8(), task.hint);
  task.arm.reset();
  if (in.u8() == 0) return;
  task.arm.emplace();
  task.arm->number = in.u64();
  task.arm->index = in.u64();
}

void encode(ByteWriter& out, const Found& found) {
  encode(out, found.verdict);
  encode(out, found.schedule);
  encode(out, found.schedule.errors);
  out.u64(found.execution);
  out.u64(found.occurrences);
}

void decode(ByteReader& in, Found& found) {
  decode(in, found.verdict);
  decode(in, found.schedule);
  decode(in, found.schedule.errors);
  found.execution = in.u64();
  found.occurrences = in.u64();
}

// Saves everything that the search knows: counts, findings, seen classes, and the strategy's own state.
void Explorer::save(ByteWriter& out) const {
  for (uint64_t count : {result_.tasks, result_.executions, result_.blocked, result_.truncated,
                         result_.diverged, result_.failed, result_.positions, result_.positions_run,
                         result_.choice_points, result_.classes, result_.guessed, result_.broken})
    out.u64(count);
  for (const uint64_t count : result_.abandoned) out.u64(count);
  for (const uint64_t count : result_.limits) out.u64(count);
  encode(out, result_.found);
  encode(out, result_.trouble);
  out.u64(result_.learned.size());
  for (const Place place : result_.learned) out.u64(place.raw);
  out.u8(learned_more_);
  std::vector<uint64_t> classes;  // sorted, because the map's order depends on how it grew
  classes.reserve(classes_.size());
  classes_.for_each([&](uint64_t hash, uint8_t) { classes.push_back(hash); });
  std::sort(classes.begin(), classes.end());
  out.u64(classes.size());
  for (uint64_t hash : classes) out.fixed64(hash);
  strategy_.save(out);
}

bool Explorer::load(ByteReader& in) {
  for (uint64_t* count : {&result_.tasks, &result_.executions, &result_.blocked, &result_.truncated,
                          &result_.diverged, &result_.failed, &result_.positions, &result_.positions_run,
                          &result_.choice_points, &result_.classes, &result_.guessed, &result_.broken})
    *count = in.u64();
  for (uint64_t& count : result_.abandoned) count = in.u64();
  for (uint64_t& count : result_.limits) count = in.u64();
  decode(in, result_.found);
  decode(in, result_.trouble);
  result_.learned.clear();
  for (uint64_t n = in.count(); n > 0; --n) result_.learned.push_back(Place{in.u64()});
  if (!std::ranges::is_sorted(result_.learned)) in.fail();
  learned_more_ = in.u8() != 0;
  for (uint64_t n = in.count(); n > 0; --n) classes_[in.fixed64()] = 1;
  return strategy_.load(in) && in.ok();
}

}  // namespace slalom
