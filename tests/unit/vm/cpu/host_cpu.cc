// The stub that runs an instruction on the host, and the page tables that let a handler run it at the same
// addresses.
#include "unit/vm/cpu/host_cpu.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "vm/cpu/handler.h"

namespace slalom::vm {
namespace {

// Data of the stub below, which contains its offsets.
struct alignas(64) Frame {
  uint64_t gpr[16];
  uint64_t rflags;
  uint64_t padding[7];
  FxImage guest;
  FxImage host;
};
static_assert(offsetof(Frame, rflags) == 128 && offsetof(Frame, guest) == 192 &&
              offsetof(Frame, host) == 704);

// Loads the guest's registers, runs the instruction in the slot, and stores the registers. It is copied to a
// writable page, so it contains no absolute addresses. r15 points to the frame. Instructions under test must
// not change r15 and rsp.
extern "C" const uint8_t host_stub[], host_stub_slot[], host_stub_end[];
constexpr unsigned kSlot = 16;
asm(R"(
  .pushsection .rodata
  host_stub:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rdi, %r15
    fxsave64 704(%r15)
    fxrstor64 192(%r15)
    pushq 128(%r15)
    popfq
    mov (%r15), %rax
    mov 8(%r15), %rcx
    mov 16(%r15), %rdx
    mov 56(%r15), %rdi
  host_stub_slot:
    .skip 16, 0x90
    mov %rax, (%r15)
    mov %rcx, 8(%r15)
    mov %rdx, 16(%r15)
    mov %rdi, 56(%r15)
    pushfq
    popq 128(%r15)
    fxsave64 192(%r15)
    fxrstor64 704(%r15)
    cld
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
  host_stub_end:
  .popsection
)");

constexpr unsigned kOperand = 2048;  // offset of the operand in its page

// After a fault, the stub continues behind the slot and stores the state that the fault left.
volatile uint64_t slot_start;
volatile int caught;

void on_signal(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto rip = static_cast<uint64_t>(registers[REG_RIP]);
  caught = static_cast<int>(registers[REG_TRAPNO]);
  if (rip < slot_start || rip >= slot_start + kSlot) _exit(70);
  registers[REG_RIP] = static_cast<greg_t>(slot_start + kSlot);
}

constexpr int kSignals[] = {SIGFPE, SIGSEGV, SIGILL, SIGBUS};

class NoBus : public Bus {
 public:
  bool in(unsigned, uint16_t, unsigned, uint32_t&) override { return false; }
  bool out(unsigned, uint16_t, unsigned, uint32_t) override { return false; }
  bool is_device(Physical) const override { return false; }
  bool read(unsigned, Physical, unsigned, uint64_t&) override { return false; }
  bool write(unsigned, Physical, unsigned, uint64_t) override { return false; }
  uint64_t now() const override { return 0; }
  uint64_t apic_base(unsigned) const override { return 0; }
  bool set_apic_base(unsigned, uint64_t) override { return false; }
  uint8_t task_priority(unsigned) const override { return 0; }
  void set_task_priority(unsigned, uint8_t) override {}
  bool attention(unsigned, bool) const override { return false; }
};

void to_registers(const FxImage& image, Registers& regs) {
  regs.mxcsr = image.mxcsr;
  regs.fpu.control = image.control;
  regs.fpu.status = image.status;
  regs.fpu.valid = image.valid;
  regs.fpu.opcode = image.opcode;
  regs.fpu.instruction = image.instruction;
  regs.fpu.operand = image.operand;
  const unsigned top = (image.status >> 11) & 7;
  for (unsigned i = 0; i < 8; ++i)
    regs.fpu.registers[(top + i) & 7] = {image.st[i].low, static_cast<uint16_t>(image.st[i].high)};
  for (unsigned i = 0; i < 16; ++i) regs.xmm[i] = {image.xmm[i].low, image.xmm[i].high};
}

void from_registers(const Registers& regs, FxImage& image) {
  image.mxcsr = regs.mxcsr;
  image.control = regs.fpu.control;
  image.status = regs.fpu.status;
  image.valid = regs.fpu.valid;
  image.opcode = regs.fpu.opcode;
  image.instruction = regs.fpu.instruction;
  image.operand = regs.fpu.operand;
  const unsigned top = (image.status >> 11) & 7;
  for (unsigned i = 0; i < 8; ++i) {
    const X87Register& r = regs.fpu.registers[(top + i) & 7];
    image.st[i] = {r.significand, r.sign_exponent};
  }
  for (unsigned i = 0; i < 16; ++i) image.xmm[i] = {regs.xmm[i].low, regs.xmm[i].high};
}

const Op* finish(Cpu& cpu, const Op*) {
  cpu.leave = Leave::Block;
  return nullptr;
}

}  // namespace

HostCpu::HostCpu() {
  void* code =
      mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(code != MAP_FAILED, "no memory for a page of host code");
  code_ = static_cast<uint8_t*>(code);
  std::memcpy(code_, host_stub, static_cast<size_t>(host_stub_end - host_stub));
  slot_start = reinterpret_cast<uint64_t>(code_) + static_cast<uint64_t>(host_stub_slot - host_stub);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  for (const int number : kSignals) sigaction(number, &action, nullptr);

  ram_ = Ram::make(1 << 20).value();
  bus_ = std::make_unique<NoBus>();
  system_ = std::make_unique<System>(*ram_, *bus_);
  cpu_ = std::make_unique<Cpu>(*system_, 0);
  map_operand();
}

// Maps the operand's page at its host address, where it also lies in guest memory.
void HostCpu::map_operand() {
  constexpr uint64_t kFirstTable = 1, kOperandPage = 16;
  ram_->touch(kOperandPage);
  page_ = ram_->page_data(kOperandPage);
  const auto address = reinterpret_cast<uint64_t>(page_);
  for (unsigned level = 4; level > 0; --level) {
    const uint64_t table = kFirstTable + 4 - level, next = level > 1 ? table + 1 : kOperandPage;
    const uint64_t entry = ram_->address_of(next) | 0x67;  // present, writable, user, accessed, dirty
    const uint64_t index = (address >> (3 + 9 * level)) & 511;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&entry);
    CHECK(ram_->write(ram_->address_of(table) + 8 * index, {bytes, sizeof entry}), "a table outside of RAM");
  }
  Registers& regs = cpu_->regs;
  regs.cr3 = ram_->address_of(kFirstTable);
  regs.efer = efer::kLme | efer::kLma;
  regs.cr0 = CpuCase{}.cr0;
  regs.cr4 = CpuCase{}.cr4;
  regs.segments[kCs].attributes = 0x29b;  // present, code, 64-bit
  cpu_->registers_changed();
}

HostCpu::~HostCpu() {
  for (const int number : kSignals) signal(number, SIG_DFL);
  munmap(code_, kPageSize);
}

bool HostCpu::decode(std::span<const uint8_t> bytes, Instruction& in) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  in.mode.bits = CodeMode::k64;
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &in.info, in.operands)) &&
         in.info.length == bytes.size();
}

uint64_t HostCpu::operand_address(const CpuCase& start) const {
  return reinterpret_cast<uint64_t>(page_) + kOperand + start.offset;
}

void HostCpu::prepare(const CpuCase& start) {
  std::memset(page_, 0, kPageSize);
  std::memcpy(page_ + kOperand - start.memory.size() / 2, start.memory.data(), start.memory.size());
}

CpuResult HostCpu::run_on_host(std::span<const uint8_t> bytes, const CpuCase& start) {
  prepare(start);
  CHECK(bytes.size() <= kSlot, "an instruction of {} bytes", bytes.size());
  uint8_t* slot = code_ + (host_stub_slot - host_stub);
  std::memset(slot, 0x90, kSlot);
  std::memcpy(slot, bytes.data(), bytes.size());
  Frame frame{};
  std::memcpy(frame.gpr, start.gpr.data(), sizeof frame.gpr);
  frame.gpr[kRdi] = operand_address(start);
  frame.rflags = start.rflags;
  frame.guest = start.fx;
  caught = -1;
  reinterpret_cast<void (*)(Frame*)>(code_)(&frame);
  CpuResult result{.state = start, .fault = caught};
  std::memcpy(result.state.gpr.data(), frame.gpr, sizeof frame.gpr);
  result.state.rflags = frame.rflags;
  result.state.fx = frame.guest;
  std::memcpy(result.state.memory.data(), page_ + kOperand - start.memory.size() / 2, start.memory.size());
  return result;
}

CpuResult HostCpu::run_handler(std::span<const uint8_t> bytes, const CpuCase& start) {
  prepare(start);
  Cpu& cpu = *cpu_;
  std::copy(start.gpr.begin(), start.gpr.end(), cpu.regs.gpr.begin());
  cpu.regs.gpr[kRdi] = operand_address(start);
  cpu.regs.gpr[kRip] = slot_start;
  cpu.regs.gpr[kZero] = 0;
  cpu.regs.cr0 = start.cr0;
  cpu.regs.cr4 = start.cr4;
  cpu.regs.rflags = start.rflags;
  cpu.flags.set_arithmetic(start.rflags);
  to_registers(start.fx, cpu.regs);
  cpu.fault = Fault{};
  cpu.stopped_at = nullptr;

  CpuResult result{.state = start};
  Instruction in;
  Op ops[2]{};
  CHECK(decode(bytes, in), "not an instruction");
  ops[0].base = kRdi;
  ops[0].index = ops[1].index = ops[1].base = kZero;
  ops[0].length = static_cast<uint8_t>(bytes.size());
  ops[0].handler = nullptr;
  for (const auto family : {select_sse, select_mmx, select_x87})
    if (ops[0].handler == nullptr) ops[0].handler = family(in, ops[0]);
  ops[1].handler = finish;
  result.known = ops[0].handler != nullptr;
  if (!result.known) return result;
  for (const Op* op = ops; op != nullptr;) op = op->handler(cpu, op);
  if (cpu.stopped_at != nullptr) result.fault = cpu.fault.vector;

  std::copy_n(cpu.regs.gpr.begin(), 16, result.state.gpr.begin());
  result.state.rflags = cpu.rflags();
  from_registers(cpu.regs, result.state.fx);
  std::memcpy(result.state.memory.data(), page_ + kOperand - start.memory.size() / 2, start.memory.size());
  return result;
}

std::string difference(CpuResult host, const CpuResult& handler) {
  host.state.fx.mxcsr_mask = handler.state.fx.mxcsr_mask;  // AMD has one more bit
  if (!__builtin_cpu_is("intel")) {
    host.state.fx.opcode = handler.state.fx.opcode;
    host.state.fx.instruction = handler.state.fx.instruction;
    host.state.fx.operand = handler.state.fx.operand;
  }
  if (host.fault == handler.fault && host.state == handler.state) return {};
  std::string out;
  const auto differ = [&out](const std::string& what, uint64_t a, uint64_t b) {
    if (a != b) out += fmt::format(" {}: host {:x}, handler {:x};", what, a, b);
  };
  const FxImage &a = host.state.fx, &b = handler.state.fx;
  differ("fault", static_cast<uint64_t>(host.fault), static_cast<uint64_t>(handler.fault));
  for (unsigned i = 0; i < 16; ++i) differ(fmt::format("gpr{}", i), host.state.gpr[i], handler.state.gpr[i]);
  differ("rflags", host.state.rflags, handler.state.rflags);
  differ("control", a.control, b.control);
  differ("status", a.status, b.status);
  differ("valid", a.valid, b.valid);
  differ("opcode", a.opcode, b.opcode);
  differ("instruction", a.instruction, b.instruction);
  differ("operand", a.operand, b.operand);
  differ("mxcsr", a.mxcsr, b.mxcsr);
  for (unsigned i = 0; i < 8; ++i) {
    differ(fmt::format("st{}", i), a.st[i].low, b.st[i].low);
    differ(fmt::format("st{} exponent", i), a.st[i].high, b.st[i].high);
  }
  for (unsigned i = 0; i < 16; ++i) {
    differ(fmt::format("xmm{}", i), a.xmm[i].low, b.xmm[i].low);
    differ(fmt::format("xmm{} high", i), a.xmm[i].high, b.xmm[i].high);
  }
  for (size_t i = 0; i < host.state.memory.size(); ++i)
    differ(fmt::format("byte {}", static_cast<int>(i) - static_cast<int>(host.state.memory.size() / 2)),
           host.state.memory[i], handler.state.memory[i]);
  return out;
}

std::string trouble_with_missing_page(HostCpu& host, std::span<const uint8_t> bytes, CpuCase start) {
  Instruction in;
  CHECK(HostCpu::decode(bytes, in), "not an instruction");
  // Hints access nothing, and single bytes cannot cross pages.
  if (in.visible() == 0 || (!in.is_memory(0) && (in.visible() < 2 || !in.is_memory(1)))) return {};
  const unsigned size = in.is_memory(0) ? in.size(0) : in.size(1);
  if (size < 2) return {};
  // As far as the alignment permits: FXSAVE's area must be aligned like vectors.
  start.offset = static_cast<unsigned>(kPageSize - kOperand - (size >= 16 ? 16 : 1));
  if (size == 16) start.offset += 15;
  CpuResult result = host.run_handler(bytes, start);
  if (result.fault != kPageFault && (size != 16 || result.fault != kProtection))
    return fmt::format("fault {}", result.fault);
  result.fault = -1;
  CpuResult before{.state = start};
  before.state.gpr[kRdi] = result.state.gpr[kRdi];
  return difference(before, result);
}

bool make_form(std::span<const uint8_t> bytes, Form& form, ZydisISASet& set) {
  Instruction in;
  if (!HostCpu::decode(bytes, in)) return false;
  set = in.info.meta.isa_set;
  form.bytes.assign(bytes.begin(), bytes.end());
  form.mnemonic = in.mnemonic();
  form.name = ZydisMnemonicGetString(in.mnemonic());
  for (const uint8_t byte : bytes) form.name += fmt::format(" {:02x}", byte);
  return true;
}

}  // namespace slalom::vm
