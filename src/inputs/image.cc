#include "inputs/image.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/little_endian.h"
#include "inputs/system_calls.h"

namespace slalom {
namespace {

constexpr uint32_t kMagic = 0x50464c53;  // "SLFP"
constexpr uint32_t kHeaderSize = 32;
constexpr uint32_t kStepSize = 8 + 16 * CallStep::kOperands;

uint32_t round_up(uint32_t value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Where things are, which follows from how many there are.
struct Layout {
  uint32_t objects, results, data, size;
};

Layout layout_of(uint32_t steps, uint32_t calls, uint32_t objects, uint32_t data) {
  Layout layout{};
  layout.objects = kHeaderSize + steps * kStepSize;
  layout.results = round_up(layout.objects + objects * 8, 16);
  // Large objects are aligned to pages, so the data is.
  layout.data = round_up(layout.results + calls * 8, data >= 4096 ? 4096 : 16);
  layout.size = layout.data + data;
  return layout;
}

void put(std::vector<uint8_t>& out, uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

uint64_t get(std::span<const uint8_t> in, size_t at, unsigned size) {
  uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i) value |= uint64_t{in[at + i]} << (8 * i);
  return value;
}

bool good_size(unsigned size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

bool fits(uint64_t place, uint64_t size, size_t data) {
  return size <= data && place <= data - size;
}

bool good_operand(const Operand& operand, size_t calls_before, size_t data) {
  switch (operand.kind) {
    case Operand::Kind::Constant:
      return operand.addend == 0;
    case Operand::Kind::Result:
      return operand.value < calls_before;
    case Operand::Kind::Pointer:
      return operand.value <= data && operand.addend == 0;
    case Operand::Kind::Load:
      return good_size(operand.size) && fits(operand.value, operand.size, data);
  }
  return false;
}

Result<CallStep> decode_step(std::span<const uint8_t> image, size_t at, size_t calls_before, size_t data) {
  CallStep step;
  const uint64_t kind = get(image, at, 2);
  step.size = static_cast<uint16_t>(get(image, at + 2, 2));
  step.number = static_cast<uint32_t>(get(image, at + 4, 4));
  bool good = kind <= 1;
  step.kind = static_cast<CallStep::Kind>(kind);
  if (step.kind == CallStep::Kind::Store)
    good = good && good_size(step.size) && fits(step.number, step.size, data);
  else
    good = good && step.size <= CallStep::kOperands && step.number <= kMaxSystemCall;
  const unsigned used = step.kind == CallStep::Kind::Store ? 1 : step.size;
  for (unsigned i = 0; i < CallStep::kOperands; ++i) {
    const size_t from = at + 8 + 16 * size_t{i};
    Operand& operand = step.operands[i];
    const uint64_t operand_kind = get(image, from, 1);
    const uint64_t is_signed = get(image, from + 2, 2);
    if (operand_kind > 3 || is_signed > 1) return error("malformed: a list of calls has an unknown argument");
    operand.kind = static_cast<Operand::Kind>(operand_kind);
    operand.size = static_cast<uint8_t>(get(image, from + 1, 1));
    operand.is_signed = is_signed != 0;
    operand.addend = static_cast<int32_t>(get(image, from + 4, 4));
    operand.value = get(image, from + 8, 8);
    good = good && good_operand(operand, calls_before, data) && (i < used || operand == Operand{});
  }
  if (!good) return error("malformed: a list of calls has an argument that leads nowhere");
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
    put(out, field, 4);
  for (const CallStep& step : program.steps) {
    put(out, static_cast<uint64_t>(step.kind), 2);
    put(out, step.size, 2);
    put(out, step.number, 4);
    for (const Operand& operand : step.operands) {
      put(out, static_cast<uint64_t>(operand.kind), 1);
      put(out, operand.size, 1);
      put(out, operand.is_signed, 2);
      put(out, static_cast<uint32_t>(operand.addend), 4);
      put(out, operand.value, 8);
    }
  }
  for (const DataObject& object : program.objects) {
    put(out, object.offset, 4);
    put(out, object.size, 4);
  }
  out.resize(layout.data);
  out.insert(out.end(), program.data.begin(), program.data.end());
  return out;
}

Result<CallProgram> decode_image(std::span<const uint8_t> image) {
  if (image.size() < kHeaderSize || get(image, 0, 4) != kMagic) return error("malformed: no list of calls");
  const auto steps = static_cast<uint32_t>(get(image, 4, 4));
  const auto calls = static_cast<uint32_t>(get(image, 8, 4));
  const auto data = static_cast<uint32_t>(get(image, 16, 4));
  const auto objects = static_cast<uint32_t>(get(image, 24, 4));
  if (steps > kMaxCallSteps || calls > steps || objects > kMaxCallData || image.size() > kMaxImage ||
      data > image.size() || image.size() - data > kMaxCallData)
    return error("malformed: a list of calls of an impossible size");
  const Layout layout = layout_of(steps, calls, objects, static_cast<uint32_t>(image.size() - data));
  if (get(image, 12, 4) != layout.results || data != layout.data || get(image, 20, 4) != layout.size ||
      layout.size != image.size() || get(image, 28, 4) != layout.objects)
    return error("malformed: a list of calls whose parts do not fit together");
  CallProgram program;
  program.data.assign(image.begin() + data, image.end());
  size_t made = 0;
  for (uint32_t i = 0; i < steps; ++i) {
    TRY_ASSIGN(CallStep step,
               decode_step(image, kHeaderSize + size_t{i} * kStepSize, made, program.data.size()));
    made += step.kind == CallStep::Kind::Call;
    program.steps.push_back(step);
  }
  if (made != calls) return error("malformed: a list of calls has another number of them than it says");
  for (uint32_t i = 0; i < objects; ++i) {
    const size_t at = layout.objects + 8 * size_t{i};
    const DataObject object{static_cast<uint32_t>(get(image, at, 4)),
                            static_cast<uint32_t>(get(image, at + 4, 4))};
    if (!fits(object.offset, object.size, program.data.size()))
      return error("malformed: a list of calls has data that it does not have");
    program.objects.push_back(object);
  }
  const auto is_zero = [](uint8_t byte) { return byte == 0; };
  if (!std::all_of(image.begin() + layout.results, image.begin() + layout.data, is_zero))
    return error("malformed: a list of calls has results already");
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
    results.values.push_back(static_cast<int64_t>(get(bytes, 8 * size_t{i}, 8)));
  results.data.assign(bytes.begin() + (layout.data - layout.results), bytes.end());
  return results;
}

}  // namespace slalom
