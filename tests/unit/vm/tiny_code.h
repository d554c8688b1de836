// A small assembler for 32-bit code, and names for a KernelMachine that runs such code.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "guest/slalom.h"
#include "trace/names.h"

namespace slalom::vm {

// Names that show numbers unchanged.
class NumberNames final : public Names {
 public:
  std::string agent(AgentId id) const override { return id.path(); }
  std::string role(AgentId id) const override { return id.path(); }
  std::string object(ObjectId id) const override { return fmt::format("{:x}", id.raw); }
  std::string place(Place pc) const override { return fmt::format("{:x}", pc.raw); }
  std::string source(Place) const override { return ""; }
};

struct TinyCode {
  std::vector<uint8_t> bytes;

  TinyCode& add(std::initializer_list<int> more) {
    for (const int byte : more) bytes.push_back(static_cast<uint8_t>(byte));
    return *this;
  }
  TinyCode& word(uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
    return *this;
  }
  TinyCode& store(uint32_t address, uint32_t value) { return add({0xc7, 0x05}).word(address).word(value); }
  // [0x100000] += 1, as a load, an increment and a store
  TinyCode& increment() {
    add({0xa1}).word(0x100000);         // mov eax, [0x100000]
    add({0x40});                        // inc eax
    return add({0xa3}).word(0x100000);  // mov [0x100000], eax
  }
  TinyCode& set_esp(uint32_t value) { return add({0xbc}).word(value); }
  TinyCode& call_next() { return add({0xe8}).word(0); }  // so that the stack pointer is checked
  TinyCode& call(const TinyCode& function) {             // `function` is directly behind the call
    add({0xe8}).word(2).add({0xeb, static_cast<int>(function.bytes.size()) + 1});
    bytes.insert(bytes.end(), function.bytes.begin(), function.bytes.end());
    return add({0xc3});
  }
  TinyCode& print(const std::string& text) {
    for (const char c : text) add({0xb0, c, 0xe6, 0xe9});  // mov al, c; out 0xe9, al
    return *this;
  }
  // Sends an interrupt to its own CPU. It arrives when the CPU accepts interrupts.
  TinyCode& interrupt_self(uint8_t vector) {
    store(0xfee000f0, 0x1ff);                     // switch the APIC on
    return store(0xfee00300, 0x44000u | vector);  // to itself
  }
  TinyCode& end_of_interrupt() { return store(0xfee000b0, 0); }
  TinyCode& hypercall(uint32_t number, uint32_t argument) {
    add({0xbf}).word(argument);     // mov edi, argument
    add({0x31, 0xf6, 0x31, 0xd2});  // xor esi, esi; xor edx, edx
    add({0xb8}).word(number);       // mov eax, number
    return add({0x0f, 0x1f, 0x84, 0x00}).word(0x6c616c73);
  }
  TinyCode& done(uint32_t flow = 0) {
    hypercall(SLALOM_DONE, flow);
    return add({0xeb, 256 - 24});  // again: back to mov edi
  }
};

}  // namespace slalom::vm
