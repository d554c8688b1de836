// ApicMessage: messages between local APICs and the IO-APIC.
#pragma once

#include <cstdint>

namespace slalom::vm {

// As encoded in bits 8 to 10 of the interrupt command register, of redirection entries and of local vectors.
enum class Delivery : uint8_t { Fixed, LowestPriority, Smi, Reserved, Nmi, Init, Startup, ExtInt };

enum class Shorthand : uint8_t { None, Self, All, Others };

struct ApicMessage {
  Delivery delivery = Delivery::Fixed;
  uint8_t vector = 0;
  bool level = false;  // level-triggered: the IO-APIC is notified of the end of interrupt
  bool logical = false;
  uint8_t destination = 0;
  Shorthand shorthand = Shorthand::None;
  bool operator==(const ApicMessage&) const = default;
};

// Reaches a CPU like an interrupt, but restarts it.
struct CpuSignal {
  enum class Kind : uint8_t { None, Init, Startup };
  Kind kind = Kind::None;
  uint8_t vector = 0;  // for Startup: start at vector * 4096
  bool operator==(const CpuSignal&) const = default;
};

}  // namespace slalom::vm
