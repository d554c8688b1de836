// to_text(): writes a CallProgram in its readable form.
#include <algorithm>

#include "inputs/call_program.h"
#include "inputs/system_calls.h"

namespace slalom {
namespace {

std::string quoted(std::span<const uint8_t> bytes) {
  std::string text = "\"";
  for (const uint8_t byte : bytes) {
    if (byte == '"' || byte == '\\')
      text += fmt::format("\\{}", static_cast<char>(byte));
    else if (byte >= ' ' && byte <= '~')
      text += static_cast<char>(byte);
    else
      text += fmt::format("\\x{:02x}", byte);
  }
  return text + "\"";
}

std::string object_text(std::span<const uint8_t> bytes) {
  size_t used = bytes.size();
  while (used > 0 && bytes[used - 1] == 0) --used;
  if (used == 0) return fmt::format("buf({})", bytes.size());
  const std::string text = quoted(bytes.first(used));
  if (used + 1 == bytes.size()) return text;
  return used == bytes.size() ? fmt::format("{{{}}}", text)
                              : fmt::format("{{{}, zero({})}}", text, bytes.size() - used);
}

std::string constant_text(uint64_t value) {
  if (value >= uint64_t{1} << 63) return fmt::format("-{}", 0 - value);
  return value < 4096 ? fmt::format("{}", value) : fmt::format("{:#x}", value);
}

// Returns the object that contains the place, else the last object before it.
std::string place_text(const CallProgram& program, uint64_t place) {
  size_t found = 0;
  for (size_t i = 0; i < program.objects.size(); ++i)
    if (program.objects[i].offset <= place) found = i;
  const uint64_t more = place - program.objects[found].offset;
  return more == 0 ? fmt::format("d{}", found) : fmt::format("d{} + {}", found, more);
}

std::string operand_text(const CallProgram& program, const Operand& operand) {
  std::string text;
  switch (operand.kind) {
    case Operand::Kind::Constant:
      return constant_text(operand.value);
    case Operand::Kind::Pointer:
      return place_text(program, operand.value);
    case Operand::Kind::Result:
      text = fmt::format("r{}", operand.value);
      break;
    case Operand::Kind::Load:
      text = fmt::format("load({}{}, {})", operand.is_signed ? 'i' : 'u', operand.size * 8,
                         place_text(program, operand.value));
      break;
  }
  if (operand.addend > 0) text += fmt::format(" + {}", operand.addend);
  if (operand.addend < 0) text += fmt::format(" - {}", -int64_t{operand.addend});
  return text;
}

}  // namespace

std::string to_text(const CallProgram& program) {
  std::string text;
  for (size_t i = 0; i < program.objects.size(); ++i) {
    const DataObject& object = program.objects[i];
    text += fmt::format("d{} = {}\n", i,
                        object_text(std::span(program.data).subspan(object.offset, object.size)));
  }
  size_t calls = 0;
  for (const CallStep& step : program.steps) {
    if (step.kind == CallStep::Kind::Store) {
      text += fmt::format("store(u{}, {}, {})\n", step.size * 8, place_text(program, step.number),
                          operand_text(program, step.operands[0]));
      continue;
    }
    if (step.kind == CallStep::Kind::Choose) {
      text += fmt::format("choose(u{}, {}, {})\n", step.size * 8, place_text(program, step.number),
                          operand_text(program, step.operands[0]));
      continue;
    }
    if (step.copies()) {
      text += fmt::format("{}({}, {}, {}, {})\n", step.kind == CallStep::Kind::Write ? "poke" : "peek",
                          operand_text(program, step.operands[0]), operand_text(program, step.operands[1]),
                          place_text(program, step.number), step.size);
      continue;
    }
    std::string arguments;
    for (unsigned i = 0; i < step.size; ++i)
      arguments += (i == 0 ? "" : ", ") + operand_text(program, step.operands[i]);
    text += fmt::format("r{} = {}({})\n", calls++, system_call_name(step.number), arguments);
  }
  return text;
}

}  // namespace slalom
