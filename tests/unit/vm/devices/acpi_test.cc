#include "vm/devices/acpi.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/check.h"

namespace slalom::vm {
namespace {

using Bytes = std::vector<uint8_t>;

uint64_t number(const Bytes& bytes, size_t offset, unsigned size) {
  uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i) value |= uint64_t{bytes.at(offset + i)} << 8 * i;
  return value;
}

int sum(const Bytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0) & 0xff;
}

Bytes part(const Bytes& image, Physical address, size_t size) {
  const auto start = image.begin() + static_cast<long>(address - kAcpiBase);
  EXPECT_LE(address - kAcpiBase + size, image.size());
  return Bytes(start, start + static_cast<long>(size));
}

Bytes table_at(const Bytes& image, Physical address) {
  return part(image, address, number(image, address - kAcpiBase + 4, 4));
}

std::string signature(const Bytes& table) {
  return std::string(table.begin(), table.begin() + 4);
}

// Finds all tables from the RSDP, as an operating system does.
std::map<std::string, Bytes> walk(const Bytes& image) {
  std::map<std::string, Bytes> found;
  const Bytes xsdt = table_at(image, number(image, 24, 8));
  found["XSDT"] = xsdt;
  for (size_t offset = 36; offset < xsdt.size(); offset += 8) {
    const Bytes table = table_at(image, number(xsdt, offset, 8));
    found[signature(table)] = table;
  }
  found["DSDT"] = table_at(image, number(found.at("FACP"), 140, 8));
  return found;
}

TEST(Acpi, TheTablesLinkUpAndAddUp) {
  for (unsigned cpus = 1; cpus <= 8; ++cpus) {
    const Bytes image = acpi_tables(cpus);
    EXPECT_LE(image.size(), kAcpiSize);
    EXPECT_EQ(std::string(image.begin(), image.begin() + 8), "RSD PTR ");
    EXPECT_EQ(sum(part(image, kAcpiBase, 20)), 0);
    EXPECT_EQ(sum(part(image, kAcpiBase, 36)), 0);
    const auto tables = walk(image);
    EXPECT_EQ(tables.size(), 4u);
    for (const auto& [name, table] : tables) {
      EXPECT_EQ(sum(table), 0) << name;
      EXPECT_EQ(signature(table), name);
    }
  }
}

TEST(Acpi, TheMadtListsEveryCpu) {
  const Bytes madt = walk(acpi_tables(3)).at("APIC");
  EXPECT_EQ(number(madt, 36, 4), 0xfee00000u);
  std::vector<unsigned> cpus;
  unsigned io_apics = 0;
  for (size_t offset = 44; offset < madt.size(); offset += madt[offset + 1]) {
    if (madt[offset] == 0) {
      EXPECT_EQ(madt[offset + 2], madt[offset + 3]);
      EXPECT_EQ(number(madt, offset + 4, 4), 1u);
      cpus.push_back(madt[offset + 3]);
    } else {
      EXPECT_EQ(madt[offset], 1);
      EXPECT_EQ(number(madt, offset + 4, 4), 0xfec00000u);
      ++io_apics;
    }
  }
  EXPECT_EQ(cpus, (std::vector<unsigned>{0, 1, 2}));
  EXPECT_EQ(io_apics, 1u);
}

// Offsets and bits from the ACPI 6 specification, table "FADT format".
TEST(Acpi, TheFadtNamesTheSleepAndResetRegisters) {
  const Bytes fadt = walk(acpi_tables(1)).at("FACP");
  EXPECT_EQ(fadt.size(), 276u);
  const uint64_t flags = number(fadt, 112, 4);
  EXPECT_TRUE(flags >> 20 & 1) << "hardware-reduced";
  EXPECT_TRUE(flags >> 10 & 1) << "has a reset register";
  EXPECT_EQ(number(fadt, 109, 2) >> 5 & 1, 0u) << "has a CMOS clock";
  EXPECT_EQ(number(fadt, 116, 4), 0x01000801u) << "a byte in I/O space";
  EXPECT_EQ(number(fadt, 120, 8), 0x602u);
  EXPECT_EQ(fadt[128], 1);
  EXPECT_EQ(number(fadt, 248, 8), 0x600u);
  EXPECT_EQ(number(fadt, 260, 8), 0x601u);
}

// The output of Intel's compiler for
//   Scope (\_SB) { Device (COM1) { Name (_HID, EisaId ("PNP0501")) Name (_UID, 1) Name (_CRS,
//   ResourceTemplate () {
//     IO (Decode16, 0x3F8, 0x3F8, 0, 8)  Interrupt (ResourceConsumer, Edge, ActiveHigh, Exclusive) {4} }) } }
//   Name (_S5, Package () { 5, 5, 0, 0 })
TEST(Acpi, TheDsdtIsWhatACompilerWouldMake) {
  const Bytes expected = {0x10, 0x38, 0x5f, 0x53, 0x42, 0x5f, 0x5b, 0x82, 0x31, 0x43, 0x4f, 0x4d,
                          0x31, 0x08, 0x5f, 0x48, 0x49, 0x44, 0x0c, 0x41, 0xd0, 0x05, 0x01, 0x08,
                          0x5f, 0x55, 0x49, 0x44, 0x01, 0x08, 0x5f, 0x43, 0x52, 0x53, 0x11, 0x16,
                          0x0a, 0x13, 0x47, 0x01, 0xf8, 0x03, 0xf8, 0x03, 0x00, 0x08, 0x89, 0x06,
                          0x00, 0x03, 0x01, 0x04, 0x00, 0x00, 0x00, 0x79, 0x00, 0x08, 0x5f, 0x53,
                          0x35, 0x5f, 0x12, 0x08, 0x04, 0x0a, 0x05, 0x0a, 0x05, 0x00, 0x00};
  const Bytes dsdt = walk(acpi_tables(1)).at("DSDT");
  EXPECT_EQ(Bytes(dsdt.begin() + 36, dsdt.end()), expected);
}

TEST(Acpi, NumbersOfCpusOutOfRangeAreABrokenInvariant) {
  EXPECT_THROW(acpi_tables(0), InternalError);
  EXPECT_THROW(acpi_tables(9), InternalError);
}

}  // namespace
}  // namespace slalom::vm
