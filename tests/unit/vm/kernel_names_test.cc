// Names in reports of kernels: per-CPU variables with their CPU, and calls in the user's words.
#include "vm/scenario/kernel_names.h"

#include <gtest/gtest.h>

#include <map>

#include "vm/control/kernel_machine.h"

namespace slalom::vm {
namespace {

// The memory of two offsets of eight bytes: where each CPU's copies of the variables are.
class Offsets : public GuestMemory {
 public:
  bool read(uint64_t address, std::span<uint8_t> out) override {
    const auto found = numbers.find(address);
    if (found == numbers.end() || out.size() != 8) return false;
    for (size_t i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(found->second >> (8 * i));
    return true;
  }
  std::map<uint64_t, uint64_t> numbers = {{0xffffffff82000100, 0xffff88800f600000},
                                          {0xffffffff82000108, 0xffff88800f700000}};
};

KernelNames names() {
  std::vector<Symbol> symbols = {
      {.address = 0, .name = "fixed_percpu_data", .type = 'A', .is_offset = true},
      {.address = 0, .name = "__per_cpu_start", .type = 'A', .is_offset = true},
      {.address = 0x1fb40, .name = "__preempt_count", .type = 'A', .is_offset = true},
      {.address = 0x2f000, .name = "__per_cpu_end", .type = 'A', .is_offset = true},
      {.address = 0xffffffff82000100, .size = 64, .name = "__per_cpu_offset", .type = 'R'},
  };
  return KernelNames(SymbolTable(std::move(symbols)), {"writer", "reader"}, 2);
}

TEST(KernelNames, PerCpuVariablesAreThoseOfACpu) {
  KernelNames known = names();
  EXPECT_EQ(known.object(ObjectId{0xffff88800f61fb40}), "0xffff88800f61fb40");  // offsets not read yet
  Offsets memory;
  known.read_per_cpu(memory, 2);
  EXPECT_EQ(known.object(ObjectId{0xffff88800f61fb40}), "__preempt_count[cpu0]");
  EXPECT_EQ(known.object(ObjectId{0xffff88800f71fb44}), "__preempt_count[cpu1]+0x4");
  EXPECT_EQ(known.object(ObjectId{0xffff88800f700028}), "fixed_percpu_data[cpu1]+0x28");
  EXPECT_EQ(known.object(ObjectId{0xffff88800f72f000}), "0xffff88800f72f000");  // behind the last one
  EXPECT_EQ(known.object(ObjectId{0xffffffff82000108}), "__per_cpu_offset+0x8");
}

TEST(KernelNames, WithoutTheOffsetsAddressesStayNumbers) {
  KernelNames known = names();
  Offsets memory;
  known.read_per_cpu(memory, 3);  // the offset of the third CPU is unknown
  EXPECT_EQ(known.object(ObjectId{0xffff88800f61fb40}), "0xffff88800f61fb40");
}

TEST(KernelNames, CallsAreTheUsersWhereTheyAreTheUsers) {
  KernelNames known = names();
  const Result<CallProgram> calls = parse_calls("fd = open(\"/tmp/f\", O_RDWR)\nclose(fd)\n", "test");
  ASSERT_TRUE(calls.ok());
  known.set_calls(1, *calls);
  const AgentId reader = KernelMachine::cpu_agent(1);
  EXPECT_EQ(known.system_call(reader, 0, 2), "fd = open(\"/tmp/f\", O_RDWR)");
  EXPECT_EQ(known.system_call(reader, 1, 3), "close(fd)");
  // Differs from the program's call at this position.
  EXPECT_EQ(known.system_call(reader, 1, 18), "pwrite64");
  EXPECT_EQ(known.system_call(reader, 2, 3), "close");
  EXPECT_EQ(known.system_call(KernelMachine::cpu_agent(0), 0, 2), "open");
  EXPECT_EQ(known.system_call(reader, 0, -1), "system call -1");
  EXPECT_EQ(known.system_result(-2), "-ENOENT");
  EXPECT_EQ(known.system_result(8192), "8192");
}

}  // namespace
}  // namespace slalom::vm
