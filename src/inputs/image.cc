#include "inputs/image.h"

#include <algorithm>
#include <array>

#include "base/little_endian.h"
#include "inputs/system_calls.h"

namespace slalom {
namespace {

constexpr uint32_t kMagic = 0x50464c53;  // "SLFP"
constexpr uint32_t kHeaderSize = 48;
constexpr uint32_t kStepSize = 8 + 16 * CallStep::kOperands;

uint32_t round_up(uint32_t value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The layout of an image, computed from the number of its parts.
struct Layout {
  uint32_t objects, results, data, size;
};

Layout layout_of(uint32_t steps, uint32_t calls, uint32_t objects, uint32_t data) {
  Layout layout{};
  layout.objects = kHeaderSize + steps * kStepSize;
  layout.results = round_up(layout.objects + objects * 8, 16);
  // Large objects are aligned to pages, so the data must be too.
  layout.data = round_up(layout.results + calls * 8, data >= 4096 ? 4096 : 16);
  layout.size = layout.data + data;
  return layout;
}

// Reads a number whose place was checked to lie within the image.
template <std::unsigned_integral T>
T get(std::span<const uint8_t> image, size_t at) {
  return *get_le<T>(image, at);
}

bool good_size(unsigned size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

bool fits(uint64_t place, uint64_t size, size_t data) {
  return size <= data && place <= data - size;
}

// What a step may use of each list.
using Extents = std::array<CallProgram::Extent, 3>;

bool good_operand(const Operand& operand, const Extents& extents) {
  const CallProgram::Extent& extent = extents[static_cast<size_t>(operand.list)];
  switch (operand.kind) {
    case Operand::Kind::Constant:
      return operand.addend == 0 && operand.list == CallList::Own;
    case Operand::Kind::Result:
      return operand.value < extent.calls;
    case Operand::Kind::Pointer:
      return operand.value <= extent.data && operand.addend == 0;
    case Operand::Kind::Load:
      return good_size(operand.size) && fits(operand.value, operand.size, extent.data);
  }
  return false;
}

bool good_step(const CallStep& step, const Extents& extents) {
  switch (step.kind) {
    case CallStep::Kind::Call:
      return step.size <= CallStep::kOperands && step.number <= kMaxSystemCall && step.list == CallList::Own;
    case CallStep::Kind::Choose: {
      const Operand& below = step.operands[0];
      if (below.kind != Operand::Kind::Constant || below.value < 1 || below.value > CallStep::kMostChoices)
        return false;
      break;
    }
    case CallStep::Kind::Store:
    case CallStep::Kind::Write:
    case CallStep::Kind::Read:
      break;
  }
  return (good_size(step.size) || step.copies()) &&
         fits(step.number, step.size, extents[static_cast<size_t>(step.list)].data);
}

Result<CallStep> decode_step(std::span<const uint8_t> image, size_t at, const Extents& extents) {
  CallStep step;
  const auto kind = get<uint8_t>(image, at), list = get<uint8_t>(image, at + 1);
  if (kind >= CallStep::kKinds || list >= extents.size())
    return error("malformed: a list of calls has a step of an unknown kind");
  step.kind = static_cast<CallStep::Kind>(kind);
  step.list = static_cast<CallList>(list);
  step.size = get<uint16_t>(image, at + 2);
  step.number = get<uint32_t>(image, at + 4);
  bool good = true;
  const unsigned used = step.used_operands();
  for (unsigned i = 0; i < CallStep::kOperands; ++i) {
    const size_t from = at + 8 + 16 * size_t{i};
    Operand& operand = step.operands[i];
    const auto operand_kind = get<uint8_t>(image, from), is_signed = get<uint8_t>(image, from + 2),
               of = get<uint8_t>(image, from + 3);
    if (operand_kind > 3 || is_signed > 1 || of >= extents.size())
      return error("malformed: a list of calls has an unknown argument");
    operand.kind = static_cast<Operand::Kind>(operand_kind);
    operand.size = get<uint8_t>(image, from + 1);
    operand.is_signed = is_signed != 0;
    operand.list = static_cast<CallList>(of);
    operand.addend = static_cast<int32_t>(get<uint32_t>(image, from + 4));
    operand.value = get<uint64_t>(image, from + 8);
    good = good && good_operand(operand, extents) && (i < used || operand == Operand{});
  }
  if (!good || !good_step(step, extents))
    return error("malformed: a list of calls has an argument that leads nowhere");
  return step;
}

}  // namespace

size_t CallProgram::calls() const {
  return static_cast<size_t>(std::count_if(
      steps.begin(), steps.end(), [](const CallStep& step) { return step.kind == CallStep::Kind::Call; }));
}

std::vector<uint8_t> encode_image(const CallProgram& program) {
  const auto steps = static_cast<uint32_t>(program.steps.size());
  const auto calls = static_cast<uint32_t>(program.calls());
  const auto objects = static_cast<uint32_t>(program.objects.size());
  const Layout layout = layout_of(steps, calls, objects, static_cast<uint32_t>(program.data.size()));
  CHECK(steps <= kMaxCallSteps && program.data.size() <= kMaxCallData && layout.size <= kMaxImage,
        "{} steps, {} bytes of data", steps, program.data.size());
  std::vector<uint8_t> out;
  out.reserve(layout.size);
  for (const uint32_t field :
       {kMagic, steps, calls, layout.results, layout.data, layout.size, objects, layout.objects})
    append_le(out, field);
  for (const CallProgram::Extent& extent : program.prepared) {
    append_le(out, extent.calls);
    append_le(out, extent.data);
  }
  for (const CallStep& step : program.steps) {
    append_le(out, static_cast<uint8_t>(step.kind));
    append_le(out, static_cast<uint8_t>(step.list));
    append_le(out, step.size);
    append_le(out, step.number);
    for (const Operand& operand : step.operands) {
      append_le(out, static_cast<uint8_t>(operand.kind));
      append_le(out, operand.size);
      append_le(out, static_cast<uint8_t>(operand.is_signed));
      append_le(out, static_cast<uint8_t>(operand.list));
      append_le(out, static_cast<uint32_t>(operand.addend));
      append_le(out, operand.value);
    }
  }
  for (const DataObject& object : program.objects) {
    append_le(out, object.offset);
    append_le(out, object.size);
  }
  out.resize(layout.data);
  out.insert(out.end(), program.data.begin(), program.data.end());
  return out;
}

Result<CallProgram> decode_image(std::span<const uint8_t> image) {
  if (image.size() < kHeaderSize || get<uint32_t>(image, 0) != kMagic)
    return error("malformed: no list of calls");
  const auto steps = get<uint32_t>(image, 4);
  const auto calls = get<uint32_t>(image, 8);
  const auto data = get<uint32_t>(image, 16);
  const auto objects = get<uint32_t>(image, 24);
  if (steps > kMaxCallSteps || calls > steps || objects > kMaxCallData || image.size() > kMaxImage ||
      data > image.size() || image.size() - data > kMaxCallData)
    return error("malformed: a list of calls of an impossible size");
  const Layout layout = layout_of(steps, calls, objects, static_cast<uint32_t>(image.size() - data));
  if (get<uint32_t>(image, 12) != layout.results || data != layout.data ||
      get<uint32_t>(image, 20) != layout.size || layout.size != image.size() ||
      get<uint32_t>(image, 28) != layout.objects)
    return error("malformed: a list of calls whose parts do not fit together");
  CallProgram program;
  program.data.assign(image.begin() + data, image.end());
  for (size_t i = 0; i < program.prepared.size(); ++i) {
    program.prepared[i] = {get<uint32_t>(image, 32 + 8 * i), get<uint32_t>(image, 36 + 8 * i)};
    if (program.prepared[i].calls > kMaxCallSteps || program.prepared[i].data > kMaxCallData)
      return error("malformed: a list of calls refers to one of an impossible size");
  }
  uint32_t made = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    TRY_ASSIGN(CallStep step,
               decode_step(image, kHeaderSize + size_t{i} * kStepSize,
                           {CallProgram::Extent{made, static_cast<uint32_t>(program.data.size())},
                            program.prepared[0], program.prepared[1]}));
    made += step.kind == CallStep::Kind::Call;
    program.steps.push_back(step);
  }
  if (made != calls) return error("malformed: a list of calls has another number of them than it says");
  for (uint32_t i = 0; i < objects; ++i) {
    const size_t at = layout.objects + 8 * size_t{i};
    const DataObject object{get<uint32_t>(image, at), get<uint32_t>(image, at + 4)};
    if (!fits(object.offset, object.size, program.data.size()))
      return error("malformed: a list of calls has data that it does not have");
    program.objects.push_back(object);
  }
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  if (!std::all_of(image.begin() + layout.objects + 8 * objects, image.begin() + layout.data, is_zero))
    return error("malformed: a list of calls has something where its results will be");
  return program;
}

Result<CallResults> decode_results(const CallProgram& program, std::span<const uint8_t> bytes) {
  const auto calls = static_cast<uint32_t>(program.calls());
  const Layout layout =
      layout_of(static_cast<uint32_t>(program.steps.size()), calls,
                static_cast<uint32_t>(program.objects.size()), static_cast<uint32_t>(program.data.size()));
  if (bytes.size() != layout.size - layout.results)
    return error("the flow gave {} bytes of results, and {} were expected: it has damaged its own memory",
                 bytes.size(), layout.size - layout.results);
  CallResults results;
  for (uint32_t i = 0; i < calls; ++i)
    results.values.push_back(static_cast<int64_t>(get<uint64_t>(bytes, 8 * size_t{i})));
  results.data.assign(bytes.begin() + (layout.data - layout.results), bytes.end());
  return results;
}

}  // namespace slalom
