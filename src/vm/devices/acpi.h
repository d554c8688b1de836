// The machine's ACPI tables. They tell Linux about CPUs, the IO-APIC, the serial port, and how to switch off.
//
// RSDP, XSDT, FADT, MADT and DSDT, to be copied to kAcpiBase. The machine is "hardware-reduced": it has no PM
// timer and no fixed events. Writing the type of \_S5 to the sleep control register switches it off. Writing
// the reset register resets it (both in devices/system_ports.h). Linux finds the RSDP through boot_params, or
// by searching: its address is on the 16-byte boundary that old kernels scan.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/memory/ram.h"

namespace slalom::vm {

inline constexpr Physical kAcpiBase = 0xe0000;  // address of the RSDP
inline constexpr uint64_t kAcpiSize = 0x1000;   // the most that the tables may need

std::vector<uint8_t> acpi_tables(unsigned cpus);  // 1 to 8

}  // namespace slalom::vm
