// Runs one instruction twice, on the host CPU and in a handler, and reports the differences.
//
// Both start with the same registers and the same page of memory, at the same addresses: the handler's CPU
// gets a TLB entry that maps the page to itself. The comparison covers everything that the instruction could
// change: general registers, flags, the whole FXSAVE image, the page, and whether it faulted.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vm/cpu/cpu.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {

// As FXSAVE64 writes it.
struct FxImage {
  uint16_t control = 0x37f;
  uint16_t status = 0;
  uint8_t valid = 0;
  uint8_t reserved = 0;
  uint16_t opcode = 0;
  uint64_t instruction = 0;
  uint64_t operand = 0;
  uint32_t mxcsr = 0x1f80;
  uint32_t mxcsr_mask = 0xffff;
  struct Slot {
    uint64_t low = 0;
    uint64_t high = 0;
    bool operator==(const Slot&) const = default;
  };
  std::array<Slot, 8> st{};
  std::array<Slot, 16> xmm{};
  std::array<uint8_t, 96> rest{};
  bool operator==(const FxImage&) const = default;
};
static_assert(sizeof(FxImage) == 512);

struct CpuCase {
  std::array<uint64_t, 16> gpr{};  // rdi is set to the operand's address
  uint64_t rflags = flag::kFixed | flag::kInterrupt;
  FxImage fx;
  std::array<uint8_t, 2048> memory{};  // rdi points to its second half,
  unsigned offset = 0;                 // plus this offset
  // Registers that a host program cannot set.
  uint64_t cr0 = cr0::kPe | cr0::kMp | cr0::kNe | cr0::kPg;
  uint64_t cr4 = cr4::kPae | cr4::kOsfxsr | cr4::kOsxmmexcpt;
  bool operator==(const CpuCase&) const = default;

  template <class T>
  void set_operand(const T& value) {
    static_assert(sizeof value <= 512);
    std::memcpy(memory.data() + memory.size() / 2 + offset, &value, sizeof value);
  }
  template <class T>
  T operand() const {
    T value;
    std::memcpy(&value, memory.data() + memory.size() / 2 + offset, sizeof value);
    return value;
  }
};

struct CpuResult {
  CpuCase state;
  int fault = -1;  // a Vector
  bool known = true;
};

class HostCpu {
 public:
  HostCpu();
  ~HostCpu();
  HostCpu(const HostCpu&) = delete;
  HostCpu& operator=(const HostCpu&) = delete;

  // Decodes in 64-bit mode. Returns false if the bytes are no instruction.
  static bool decode(std::span<const uint8_t> bytes, Instruction& in);

  CpuResult run_on_host(std::span<const uint8_t> bytes, const CpuCase& start);
  // The result is not `known` if no family has a handler.
  CpuResult run_handler(std::span<const uint8_t> bytes, const CpuCase& start);

 private:
  void map_operand();
  void prepare(const CpuCase& start);
  uint64_t operand_address(const CpuCase& start) const;

  uint8_t* code_ = nullptr;
  uint8_t* page_ = nullptr;
  std::unique_ptr<Ram> ram_;
  std::unique_ptr<Bus> bus_;
  std::unique_ptr<System> system_;
  std::unique_ptr<Cpu> cpu_;
};

// Empty if both are equal. The instruction and operand that x87 records are only compared on Intel's CPUs.
std::string difference(CpuResult host, const CpuResult& handler);

// Runs an instruction whose operand extends into an unmapped page. Returns "" if it faults and changes
// nothing, or if it does not access memory.
std::string trouble_with_missing_page(HostCpu& host, std::span<const uint8_t> bytes, CpuCase start);

// An instruction to test, with a name for messages.
struct Form {
  std::vector<uint8_t> bytes;
  std::string name;
  ZydisMnemonic mnemonic = ZYDIS_MNEMONIC_INVALID;
};
// Returns false if the bytes are no instruction.
bool make_form(std::span<const uint8_t> bytes, Form& form, ZydisISASet& set);

}  // namespace slalom::vm
