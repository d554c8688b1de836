// Unwind tables of a kernel: whatever its memory holds, and wherever its symbols say they are, reading them
// ends, in order, with rows that a debugger's file can be made of.
#include "symbols/orc.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "fuzz/harness.h"
#include "symbols/symbol_file.h"
#include "unit/symbols/orc_tables.h"

namespace slalom {
namespace {

constexpr const char* kNames[] = {"__start_orc_unwind_ip", "__stop_orc_unwind_ip", "__start_orc_unwind",
                                  "__stop_orc_unwind"};

// An input: which form the entries have, where the four symbols lie, and memory from OrcTables::kPlaces on.
struct Input {
  bool newer = false;
  std::vector<Symbol> symbols;
  std::span<const uint8_t> memory;
};

Input parse(std::span<const uint8_t> bytes) {
  Input input{.newer = !bytes.empty() && (bytes[0] & 1) != 0, .symbols = {}, .memory = {}};
  size_t at = 1;
  for (const char* name : kNames) {
    input.symbols.push_back({.address = get_le<uint64_t>(bytes, at).value_or(0), .size = 1, .name = name});
    at += 8;
  }
  if (bytes.size() > at) input.memory = bytes.subspan(at);
  return input;
}

struct Memory final : GuestMemory {
  explicit Memory(std::span<const uint8_t> held) : bytes(held) {}
  bool read(uint64_t address, std::span<uint8_t> out) override {
    if (address < OrcTables::kPlaces) return false;
    const auto part = part_of(bytes, address - OrcTables::kPlaces, out.size());
    if (part && !out.empty()) std::memcpy(out.data(), part->data(), out.size());
    return part.has_value();
  }
  std::span<const uint8_t> bytes;
};

}  // namespace

std::vector<std::vector<uint8_t>> seed_inputs() {
  std::vector<std::vector<uint8_t>> seeds;
  for (const OrcForm& form : kOrcForms) {
    const OrcTables tables = form.tables();
    const uint64_t rules = OrcTables::kPlaces + tables.places.size();  // close together
    std::vector<uint8_t> seed = {static_cast<uint8_t>(form.newer)};
    for (const uint64_t address : {OrcTables::kPlaces, rules, rules, rules + tables.rules.size()})
      append_le(seed, address);
    seed.insert(seed.end(), tables.places.begin(), tables.places.end());
    seed.insert(seed.end(), tables.rules.begin(), tables.rules.end());
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  static const Btf types[] = {*orc_types(false), *orc_types(true)};
  const Input input = parse({data, size});
  Memory memory(input.memory);
  const SymbolTable symbols(input.symbols);
  const std::vector<UnwindRow> rows = read_orc(memory, symbols, types[input.newer ? 1 : 0]);
  CHECK(rows.size() <= input.memory.size() / 4, "{} rows of {} bytes", rows.size(), input.memory.size());
  CHECK(std::ranges::is_sorted(rows, {}, &UnwindRow::address), "rows out of order");
  for (const UnwindRow& row : rows)
    CHECK(row.kind != UnwindRow::Kind::Unknown || row.same_rule({}), "a rule of nothing");
  CHECK(!make_symbol_file(symbols.symbols(), rows).empty(), "no file of {} rows", rows.size());
  return 0;
}
