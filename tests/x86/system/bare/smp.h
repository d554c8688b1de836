// Several CPUs: the local APIC, and starting the other CPUs. For 64-bit programs.
#pragma once

#include "bare.h"

inline volatile uint32_t& apic(unsigned offset) {
  return at<uint32_t>(0xfee00000 + offset);
}
inline constexpr unsigned kApicId = 0x20, kTaskPriority = 0x80, kProcessorPriority = 0xa0,
                          kEndOfInterrupt = 0xb0, kLogicalDestination = 0xd0, kSpurious = 0xf0,
                          kInService = 0x100, kRequested = 0x200, kCommand = 0x300, kCommandTarget = 0x310,
                          kTimer = 0x320, kInitialCount = 0x380, kCurrentCount = 0x390, kDivider = 0x3e0;

inline unsigned this_cpu() {
  return apic(kApicId) >> 24;
}
unsigned cpu_count();
void send(unsigned target, uint32_t command);  // sends an interrupt command and waits until it was sent
// Runs the function on this CPU. Returns when it has started.
void start_cpu(unsigned id, Function function);
