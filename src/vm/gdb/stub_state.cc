// GdbStub: reads and writes the machine's state, and sets breakpoints.
#include <algorithm>

#include "vm/cpu/memory/guest_memory.h"
#include "vm/gdb/stub.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostPoints = 1000;

}  // namespace

std::string GdbStub::changed() {
  debugger_.changed();
  return "OK";
}

std::string GdbStub::read_registers() {
  std::string all;
  for (unsigned i = 0; i < registers_.count(); ++i) all += to_hex(registers_.read(debugger_.pc(), cpu_, i));
  return all;
}

std::string GdbStub::write_registers(FieldReader in) {
  const auto bytes = from_hex(in.rest());
  if (!bytes) return std::string(kMalformed);
  size_t size = 0;
  for (unsigned i = 0; i < registers_.count(); ++i) size += registers_.size(i);
  if (bytes->size() != size) return std::string(kMalformed);
  bool some = false, refused = false;
  std::span<const uint8_t> rest = *bytes;
  for (unsigned i = 0; i < registers_.count(); ++i) {
    const auto written = registers_.write(debugger_.pc(), cpu_, i, rest.first(registers_.size(i)));
    some |= written == RegisterMap::WriteResult::Changed;
    refused |= written == RegisterMap::WriteResult::Refused;
    rest = rest.subspan(registers_.size(i));
  }
  if (some) changed();
  return refused ? error_text("some of these registers can only be read") : "OK";
}

std::string GdbStub::read_register(FieldReader in) {
  const auto number = in.number();
  if (!number || !in.at_end() || *number >= registers_.count()) return std::string(kMalformed);
  return to_hex(registers_.read(debugger_.pc(), cpu_, static_cast<unsigned>(*number)));
}

std::string GdbStub::write_register(FieldReader in) {
  const auto number = in.number();
  if (!number || *number >= registers_.count() || !in.take("=")) return std::string(kMalformed);
  const auto bytes = from_hex(in.rest());
  if (!bytes) return std::string(kMalformed);
  switch (registers_.write(debugger_.pc(), cpu_, static_cast<unsigned>(*number), *bytes)) {
    case RegisterMap::WriteResult::Changed:
      return changed();
    case RegisterMap::WriteResult::Same:
      return "OK";
    case RegisterMap::WriteResult::Refused:
      return error_text("this register can only be read, or cannot hold this value");
  }
  return "";
}

std::string GdbStub::read_memory(FieldReader in) {
  const auto address = in.number();
  if (!address || !in.take(",")) return std::string(kMalformed);
  const auto size = in.number();
  if (!size || !in.at_end()) return std::string(kMalformed);
  std::vector<uint8_t> bytes(std::min<uint64_t>(*size, PacketReader::kLongest / 2));
  bytes.resize(vm::read_memory(debugger_.pc().cpu(cpu_), *address, bytes));
  return bytes.empty() && *size > 0 ? std::string(kNoMemory) : to_hex(bytes);
}

std::string GdbStub::write_memory(FieldReader in, bool binary) {
  const auto address = in.number();
  if (!address || !in.take(",")) return std::string(kMalformed);
  const auto size = in.number();
  if (!size || !in.take(":")) return std::string(kMalformed);
  std::vector<uint8_t> bytes(in.rest().begin(), in.rest().end());
  if (!binary) {
    auto decoded = from_hex(in.rest());
    if (!decoded) return std::string(kMalformed);
    bytes = std::move(*decoded);
  }
  if (bytes.size() != *size) return std::string(kMalformed);
  Cpu& cpu = debugger_.pc().cpu(cpu_);
  std::vector<uint8_t> old(bytes.size());
  if (read_all(cpu, *address, old) && old == bytes) return "OK";
  if (!vm::write_memory(cpu, *address, bytes)) return std::string(kNoMemory);
  return changed();
}

std::string GdbStub::set_point(FieldReader in, bool insert) {
  const auto type = in.number();
  if (!type || !in.take(",")) return std::string(kMalformed);
  const auto address = in.number();
  if (!address || !in.take(",")) return std::string(kMalformed);
  const auto size = in.number();
  if (!size || !in.at_end()) return std::string(kMalformed);
  if (*type > 4) return "";
  if (insert && debugger_.breakpoints.size() + debugger_.watchpoints.size() >= kMostPoints)
    return error_text("too many breakpoints");
  if (*type <= 1) {
    if (insert)
      debugger_.breakpoints.insert(*address);
    else
      debugger_.breakpoints.erase(*address);
    if (*type == 1 && insert)
      hardware_breaks_.insert(*address);
    else
      hardware_breaks_.erase(*address);
    return "OK";
  }
  if (*size == 0 || *size - 1 > ~*address) return std::string(kMalformed);
  const Watchpoint watch{
      .kind = static_cast<Watchpoint::Kind>(*type - 2), .first = *address, .last = *address + (*size - 1)};
  if (insert)
    debugger_.watchpoints.insert(watch);
  else
    debugger_.watchpoints.erase(watch);
  return "OK";
}

}  // namespace slalom::vm
