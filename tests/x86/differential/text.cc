#include "text.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

namespace slalom::vm::diff {
namespace {

constexpr const char* kRegisters[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
constexpr uint16_t kDefaultControl = 0x37f;
constexpr uint32_t kDefaultMxcsr = 0x1f80;

std::string hex_bytes(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{}{:02x}", text.empty() ? "" : " ", byte);
  return text;
}

Result<uint64_t> parse_number(const std::string& word) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
  if (problem != std::errc{} || end != word.data() + word.size())
    return error("'{}' is no hexadecimal number", word);
  return value;
}

Result<std::vector<uint8_t>> parse_bytes(std::istringstream& words, size_t most) {
  std::vector<uint8_t> bytes;
  std::string word;
  while (words >> word) {
    TRY_ASSIGN(const uint64_t value, parse_number(word));
    if (value > 0xff) return error("'{}' is more than a byte", word);
    bytes.push_back(static_cast<uint8_t>(value));
    if (bytes.size() > most) return error("more than {} bytes in a line", most);
  }
  return bytes;
}

// Parses names such as "st3" into their number.
bool numbered(const std::string& name, std::string_view prefix, unsigned count, unsigned& number) {
  if (!name.starts_with(prefix)) return false;
  const char* end = name.data() + name.size();
  const auto [stop, problem] = std::from_chars(name.data() + prefix.size(), end, number);
  return problem == std::errc{} && stop == end && number < count;
}

Result<void> parse_data(Case& one, std::istringstream& words) {
  std::string word;
  words >> word;
  TRY_ASSIGN(const uint64_t address, parse_number(word));
  if (address < kData || address >= kData + kWritable)
    return error("data at {} is outside of the pages", word);
  if (one.patches >= one.patch.size()) return error("more than {} pieces of data", one.patch.size());
  Patch& patch = one.patch[one.patches++];
  TRY_ASSIGN(const auto bytes, parse_bytes(words, patch.bytes.size()));
  patch.offset = static_cast<uint16_t>(address - kData);
  patch.size = static_cast<uint16_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), patch.bytes.begin());
  return {};
}

Result<void> parse_line(Case& one, const std::string& line) {
  std::istringstream words(line);
  std::string name, word;
  words >> name;
  if (name == "data") return parse_data(one, words);
  if (name == "bytes") {
    TRY_ASSIGN(const auto bytes, parse_bytes(words, 15));
    one.length = static_cast<uint8_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), one.bytes.begin());
    return {};
  }
  words >> word;
  TRY_ASSIGN(const uint64_t value, parse_number(word));
  FloatState& f = one.state.floats;
  unsigned number = 0;
  for (unsigned i = 0; i < 16; ++i)
    if (name == kRegisters[i]) {
      one.state.gpr[i] = value;
      return {};
    }
  if (name == "mode") {
    if (value != 0x64 && value != 0x32) return error("mode {} is neither 64 nor 32", word);
    one.mode = value == 0x64 ? Mode::k64 : Mode::k32;
  } else if (name == "rip") {
    if (value < kCode || value >= kCode + kCodeSize)
      return error("rip {} is outside of the code pages", word);
    one.state.rip = value;
  } else if (name == "flags") {
    one.state.flags = value;
  } else if (name == "fcw") {
    f.set(FloatState::kControl, static_cast<uint16_t>(value));
  } else if (name == "fsw") {
    f.set(FloatState::kStatus, static_cast<uint16_t>(value));
  } else if (name == "ftw") {
    f.set(FloatState::kTags, static_cast<uint8_t>(value));
  } else if (name == "mxcsr") {
    f.set(FloatState::kMxcsr, static_cast<uint32_t>(value));
  } else if (numbered(name, "st", 8, number) || numbered(name, "xmm", 16, number)) {
    // The high part comes first.
    words >> word;
    TRY_ASSIGN(const uint64_t low, parse_number(word));
    const unsigned at = (name[0] == 's' ? FloatState::kStack : FloatState::kXmm) + 16 * number;
    f.set(at, low);
    f.set(at + 8, name[0] == 's' ? value & 0xffff : value);
  } else {
    return error("'{}' is nothing a case has", name);
  }
  return {};
}

}  // namespace

std::string to_text(const Case& one) {
  std::string text = fmt::format("mode {}\nbytes {}\nrip {:x}\nflags {:x}\n", one.mode == Mode::k64 ? 64 : 32,
                                 hex_bytes({one.bytes.data(), one.length}), one.state.rip, one.state.flags);
  for (unsigned i = 0; i < 16; ++i)
    if (one.state.gpr[i] != 0) text += fmt::format("{} {:x}\n", kRegisters[i], one.state.gpr[i]);
  const FloatState& f = one.state.floats;
  const auto control = f.get<uint16_t>(FloatState::kControl), status = f.get<uint16_t>(FloatState::kStatus);
  if (control != kDefaultControl) text += fmt::format("fcw {:x}\n", control);
  if (status != 0) text += fmt::format("fsw {:x}\n", status);
  if (f.get<uint8_t>(FloatState::kTags) != 0)
    text += fmt::format("ftw {:x}\n", f.get<uint8_t>(FloatState::kTags));
  if (f.get<uint32_t>(FloatState::kMxcsr) != kDefaultMxcsr)
    text += fmt::format("mxcsr {:x}\n", f.get<uint32_t>(FloatState::kMxcsr));
  const auto pair = [&](const char* name, unsigned i, unsigned at) {
    const auto low = f.get<uint64_t>(at), high = f.get<uint64_t>(at + 8);
    if (low != 0 || high != 0) text += fmt::format("{}{} {:x} {:x}\n", name, i, high, low);
  };
  for (unsigned i = 0; i < 8; ++i) pair("st", i, FloatState::kStack + 16 * i);
  for (unsigned i = 0; i < 16; ++i) pair("xmm", i, FloatState::kXmm + 16 * i);
  for (unsigned i = 0; i < one.patches; ++i)
    text += fmt::format("data {:x} {}\n", kData + one.patch[i].offset,
                        hex_bytes({one.patch[i].bytes.data(), one.patch[i].size}));
  return text;
}

Result<Case> parse_case(std::string_view text) {
  Case one;
  one.background = kZeros;
  one.state.rip = kCode + 0x100;
  one.state.floats.set(FloatState::kControl, kDefaultControl);
  one.state.floats.set(FloatState::kMxcsr, kDefaultMxcsr);
  std::istringstream lines{std::string(text)};
  std::string line;
  while (std::getline(lines, line))
    if (!line.empty() && line[0] != '#') TRY(parse_line(one, line));
  if (one.length == 0) return error("the case has no 'bytes' line");
  return one;
}

std::string describe(const Case& one, const std::vector<Difference>& differences) {
  const std::span<const uint8_t> bytes(one.bytes.data(), one.length);
  std::string text = fmt::format("# {}\n", disassemble(one.mode, bytes, one.state.rip));
  for (const Difference& d : differences)
    text += fmt::format("# {}: the interpreter {}, the host {}\n", d.what, d.guest, d.host);
  return text + to_text(one);
}

}  // namespace slalom::vm::diff
