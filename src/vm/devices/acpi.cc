#include "vm/devices/acpi.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/check.h"
#include "vm/devices/devices.h"
#include "vm/devices/system_ports.h"

namespace slalom::vm {

namespace {

using Bytes = std::vector<uint8_t>;

void put(Bytes& out, uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) out.push_back(static_cast<uint8_t>(value >> 8 * i));
}
void put(Bytes& out, std::string_view text) {
  out.insert(out.end(), text.begin(), text.end());
}
void put(Bytes& out, const Bytes& bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void set(Bytes& table, size_t offset, uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) table[offset + i] = static_cast<uint8_t>(value >> 8 * i);
}

// Sets the checksum byte so that all bytes of the table add up to zero.
void set_checksum(Bytes& table, size_t offset, size_t covered) {
  table[offset] = 0;
  uint8_t sum = 0;
  for (size_t i = 0; i < covered; ++i) sum = static_cast<uint8_t>(sum + table[i]);
  table[offset] = static_cast<uint8_t>(-sum);
}

constexpr size_t kHeaderSize = 36;

Bytes make_table(std::string_view signature, uint8_t revision, const Bytes& body) {
  Bytes table;
  put(table, signature);
  put(table, kHeaderSize + body.size(), 4);
  put(table, revision, 1);
  put(table, 0, 1);  // checksum
  put(table, "SLALOM");
  put(table, "SLALOMVM");
  put(table, 1, 4);
  put(table, "SLLM");
  put(table, 1, 4);
  put(table, body);
  set_checksum(table, 9, table.size());
  return table;
}

// The few encodings of the ACPI machine language that are needed to name objects (ACPI specification, chapter
// "AML").
namespace aml {

// The length of a block includes its own one or two bytes.
Bytes block(const Bytes& opcode, const Bytes& content) {
  CHECK(content.size() < 0xf00, "an AML block of {} bytes", content.size());
  Bytes out = opcode;
  if (content.size() + 1 < 0x40) {
    put(out, content.size() + 1, 1);
  } else {
    const size_t length = content.size() + 2;
    put(out, 0x40 | (length & 15), 1);
    put(out, length >> 4, 1);
  }
  put(out, content);
  return out;
}

Bytes join(std::string_view name, std::initializer_list<Bytes> parts) {
  Bytes out;
  put(out, name);
  for (const Bytes& part : parts) put(out, part);
  return out;
}

Bytes scope(std::string_view name, const Bytes& content) {
  return block({0x10}, join(name, {content}));
}
Bytes device(std::string_view name, std::initializer_list<Bytes> content) {
  return block({0x5b, 0x82}, join(name, content));
}
Bytes named(std::string_view name, const Bytes& value) {
  Bytes out{0x08};
  put(out, name);
  put(out, value);
  return out;
}
Bytes number(uint8_t value) {
  return value <= 1 ? Bytes{value} : Bytes{0x0a, value};
}
Bytes buffer(const Bytes& bytes) {
  Bytes content = number(static_cast<uint8_t>(bytes.size()));
  put(content, bytes);
  return block({0x11}, content);
}
Bytes package(const Bytes& elements) {
  Bytes content{static_cast<uint8_t>(elements.size())};
  for (const uint8_t element : elements) put(content, number(element));
  return block({0x12}, content);
}

}  // namespace aml

Bytes make_dsdt() {
  const Bytes serial_id{0x0c, 0x41, 0xd0, 0x05, 0x01};             // EISA identifier PNP0501
  const Bytes io{0x47, 0x01, 0xf8, 0x03, 0xf8, 0x03, 0x00, 0x08};  // ports 3f8 to 3ff
  const Bytes line{0x89, 0x06, 0x00, 0x03, 0x01,
                   0x04, 0,    0,    0};  // interrupt 4: consumer, edge, high, exclusive
  Bytes resources;
  put(resources, io);
  put(resources, line);
  put(resources, Bytes{0x79, 0x00});  // end
  Bytes body = aml::scope(
      "_SB_", aml::device("COM1", {aml::named("_HID", serial_id), aml::named("_UID", aml::number(1)),
                                   aml::named("_CRS", aml::buffer(resources))}));
  put(body, aml::named("_S5_", aml::package({kSleepTypeOff, kSleepTypeOff, 0, 0})));
  return make_table("DSDT", 2, body);
}

Bytes make_madt(unsigned cpus) {
  Bytes body;
  put(body, kLocalApicBase, 4);
  put(body, 0, 4);  // no PIC to switch off
  for (unsigned cpu = 0; cpu < cpus; ++cpu) {
    put(body, Bytes{0, 8, static_cast<uint8_t>(cpu), static_cast<uint8_t>(cpu)});
    put(body, 1, 4);  // enabled
  }
  put(body, Bytes{1, 12, 0, 0});
  put(body, kIoApicBase, 4);
  put(body, 0, 4);  // its first pin is interrupt 0
  return make_table("APIC", 3, body);
}

void put_port(Bytes& table, size_t offset, uint16_t port) {
  set(table, offset, 1, 1);      // system I/O
  set(table, offset + 1, 8, 1);  // bits
  set(table, offset + 3, 1, 1);  // byte access
  set(table, offset + 4, port, 8);
}

Bytes make_fadt(Physical dsdt) {
  constexpr size_t kSize = 276;
  constexpr uint32_t kWbinvd = 1 << 0, kNoPowerButton = 1 << 4, kNoSleepButton = 1 << 5,
                     kResetRegister = 1 << 10, kHardwareReduced = 1 << 20;
  constexpr uint16_t kNoVga = 1 << 2;  // Linux then uses the serial port for its console
  Bytes table = make_table("FACP", 6, Bytes(kSize - kHeaderSize, 0));
  set(table, 40, dsdt, 4);
  set(table, 109, kNoVga, 2);
  set(table, 112, kWbinvd | kNoPowerButton | kNoSleepButton | kResetRegister | kHardwareReduced, 4);
  put_port(table, 116, kResetPort);
  set(table, 128, kResetValue, 1);
  set(table, 140, dsdt, 8);
  put_port(table, 244, kSleepControlPort);
  put_port(table, 256, kSleepStatusPort);
  set_checksum(table, 9, table.size());
  return table;
}

Bytes make_rsdp(Physical xsdt) {
  Bytes rsdp;
  put(rsdp, "RSD PTR ");
  put(rsdp, 0, 1);  // checksum of the first 20 bytes
  put(rsdp, "SLALOM");
  put(rsdp, 2, 1);
  put(rsdp, 0, 4);  // no RSDT
  put(rsdp, 36, 4);
  put(rsdp, xsdt, 8);
  put(rsdp, 0, 4);  // checksum of all 36
  set_checksum(rsdp, 8, 20);
  set_checksum(rsdp, 32, 36);
  return rsdp;
}

}  // namespace

std::vector<uint8_t> acpi_tables(unsigned cpus) {
  CHECK(cpus >= 1 && cpus <= kMostCpus, "ACPI tables for {} CPUs", cpus);
  Bytes image(0x100, 0);  // the RSDP is filled in last, when the XSDT's address is known
  const auto place = [&](const Bytes& table) {
    const Physical address = kAcpiBase + image.size();
    put(image, table);
    image.resize((image.size() + 63) & ~size_t{63});
    return address;
  };
  const Physical madt = place(make_madt(cpus));
  const Physical fadt = place(make_fadt(place(make_dsdt())));
  Bytes tables;
  put(tables, fadt, 8);
  put(tables, madt, 8);
  const Bytes rsdp = make_rsdp(place(make_table("XSDT", 1, tables)));
  std::copy(rsdp.begin(), rsdp.end(), image.begin());
  CHECK(image.size() <= kAcpiSize, "ACPI tables of {} bytes", image.size());
  return image;
}

}  // namespace slalom::vm
