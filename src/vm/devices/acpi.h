// The ACPI tables of the machine: how Linux learns of CPUs, the IO-APIC, the serial port and how to switch
// off.
//
// RSDP, XSDT, FADT, MADT and DSDT, to be copied to kAcpiBase. The machine is "hardware-reduced": no PM timer,
// no fixed events. Switching off is a write to the sleep control register with the type of \_S5; resetting is
// a write to the reset register (both in devices/system_ports.h). Tell Linux where the RSDP is through
// boot_params, or let it search: the address is on the 16-byte boundary that old kernels scan for.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/memory/ram.h"

namespace slalom::vm {

inline constexpr Physical kAcpiBase = 0xe0000;  // the RSDP is here
inline constexpr uint64_t kAcpiSize = 0x1000;   // never more than that

std::vector<uint8_t> acpi_tables(unsigned cpus);  // 1 to 8

}  // namespace slalom::vm
