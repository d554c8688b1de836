// x87 loads, stores, constants, and moves within the stack.
#include "vm/cpu/handlers/x87/x87_host.h"

namespace slalom::vm {
namespace {

struct Bytes10 {
  uint8_t at[10];
};

// --- loads ---

X87Answer load_on_host(const uint32_t& bits, uint16_t control) {
  X87Answer answer;
  X87_ON_HOST(answer, control, "", "flds %[b]", [b] "m"(bits));
  return answer;
}
X87Answer load_on_host(const uint64_t& bits, uint16_t control) {
  X87Answer answer;
  X87_ON_HOST(answer, control, "", "fldl %[b]", [b] "m"(bits));
  return answer;
}

X87Register from_integer(int64_t value) {
  if (value == 0) return x87::kZero;
  const uint16_t sign = value < 0 ? 0x8000 : 0;
  const uint64_t magnitude = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  const auto up = static_cast<unsigned>(__builtin_clzll(magnitude));
  return {magnitude << up, static_cast<uint16_t>(sign | (0x3fff + 63 - up))};
}

// If the stack is full, the operand is not examined. A denormal is loaded even if its exception is unmasked;
// a signalling NaN is not.
template <class Memory>
[[gnu::noinline]] void push_real(Fpu& fpu, Memory bits) {
  const X87Answer answer = is_empty(fpu, 7) ? load_on_host(bits, fpu.control) : kStackOverflow;
  const bool loads = (answer.status & ~fpu.control & x87::kInvalid) == 0;
  raise_x87(fpu, answer.status);
  if (loads) push(fpu, answer.value);
}

template <class Memory>
const Op* load_real(Cpu& cpu, const Op* op) {
  Memory bits;
  if (!x87_ready(cpu) || !load_operand(cpu, op, bits)) return stop(cpu, op);
  push_real(cpu.regs.fpu, bits);
  return done_with_memory(cpu, op);
}

template <class Integer>
const Op* load_integer(Cpu& cpu, const Op* op) {
  Integer value;
  if (!x87_ready(cpu) || !load_operand(cpu, op, value)) return stop(cpu, op);
  change_codes(cpu.regs.fpu, x87::kC1, 0);
  push_checked(cpu.regs.fpu, from_integer(value));
  return done_with_memory(cpu, op);
}

// Loads the register exactly as it is in memory. No encoding is invalid.
const Op* load_extended(Cpu& cpu, const Op* op) {
  Bytes10 bytes;
  if (!x87_ready(cpu) || !load_operand(cpu, op, bytes)) return stop(cpu, op);
  X87Register value;
  std::memcpy(&value.significand, bytes.at, 8);
  std::memcpy(&value.sign_exponent, bytes.at + 8, 2);
  change_codes(cpu.regs.fpu, x87::kC1, 0);
  push_checked(cpu.regs.fpu, value);
  return done_with_memory(cpu, op);
}

// Digits above nine are undefined. Here they count with their value.
const Op* load_decimal(Cpu& cpu, const Op* op) {
  Bytes10 bytes;
  if (!x87_ready(cpu) || !load_operand(cpu, op, bytes)) return stop(cpu, op);
  uint64_t value = 0;
  for (unsigned i = 9; i-- > 0;) value = value * 100 + (bytes.at[i] >> 4) * 10u + (bytes.at[i] & 15);
  X87Register result = from_integer(static_cast<int64_t>(value));
  if ((bytes.at[9] & 0x80) != 0) result.sign_exponent |= 0x8000;
  change_codes(cpu.regs.fpu, x87::kC1, 0);
  push_checked(cpu.regs.fpu, result);
  return done_with_memory(cpu, op);
}

// --- stores ---

template <class Memory>
struct Stored {
  Memory value{};
  uint16_t status = 0;
};

#define X87_STORE(Name, Type, instruction)                                    \
  struct Name {                                                               \
    using Memory = Type;                                                      \
    static Stored<Type> run(const X87Register& a, uint16_t control) {         \
      Stored<Type> stored;                                                    \
      asm volatile("fninit\n\tfldcw %[control]\n\tfldt %[a]\n\t" instruction  \
                   " %[value]\n\tfnstsw %[status]\n\tfninit"                  \
                   : [value] "+m"(stored.value), [status] "=m"(stored.status) \
                   : [control] "m"(control), [a] "m"(a)                       \
                   : "st", "st(1)");                                          \
      return stored;                                                          \
    }                                                                         \
    static Type indefinite();                                                 \
  }
X87_STORE(Single, uint32_t, "fstps");
X87_STORE(Double, uint64_t, "fstpl");
X87_STORE(Word, int16_t, "fistps");
X87_STORE(Dword, int32_t, "fistpl");
X87_STORE(Qword, int64_t, "fistpll");
X87_STORE(Decimal, Bytes10, "fbstp");
uint32_t Single::indefinite() {
  return 0xffc00000;
}
uint64_t Double::indefinite() {
  return 0xfff8000000000000;
}
int16_t Word::indefinite() {
  return INT16_MIN;
}
int32_t Dword::indefinite() {
  return INT32_MIN;
}
int64_t Qword::indefinite() {
  return INT64_MIN;
}
Bytes10 Decimal::indefinite() {
  return {{0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0xff}};
}

// Returns false if the instruction faults.
template <class F, bool pops>
[[gnu::noinline]] bool store_top(Cpu& cpu, const Op* op) {
  Fpu& fpu = cpu.regs.fpu;
  Stored<typename F::Memory> stored{F::indefinite(), kStackUnderflow.status};
  if (!is_empty(fpu, 0)) stored = F::run(st(fpu, 0), fpu.control);
  // If the value does not fit the destination's format, nothing is stored, unless the exception is masked.
  const bool stores = (stored.status & ~fpu.control & (x87::kExceptions & ~x87::kPrecision)) == 0;
  if (stores && !store_operand(cpu, op, stored.value)) return false;
  raise_x87(fpu, stored.status);
  if (stores && pops) pop(fpu);
  return true;
}

template <class F, bool pops>
const Op* store_converted(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu) || !store_top<F, pops>(cpu, op)) return stop(cpu, op);
  return done_with_memory(cpu, op);
}

const Op* store_extended(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  const bool empty = is_empty(fpu, 0);
  const bool stores = !empty || (fpu.control & x87::kInvalid) != 0;
  const X87Register& value = empty ? x87::kIndefinite : st(fpu, 0);
  Bytes10 bytes;
  std::memcpy(bytes.at, &value.significand, 8);
  std::memcpy(bytes.at + 8, &value.sign_exponent, 2);
  if (stores && !store_operand(cpu, op, bytes)) return stop(cpu, op);
  raise_x87(fpu, empty ? kStackUnderflow.status : 0);
  if (stores) pop(fpu);
  return done_with_memory(cpu, op);
}

// --- within the stack ---

template <bool pops>
const Op* store_register(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  const bool empty = is_empty(fpu, 0);
  const X87Register value = empty ? x87::kIndefinite : st(fpu, 0);
  if (raise_x87(fpu, empty ? kStackUnderflow.status : 0)) {
    set_st(fpu, op->src, value);
    if (pops) pop(fpu);
  }
  return done(cpu, op);
}

// The encodings D9 D8 to D9 DF do not fault for an empty st(0).
const Op* store_register_unchecked(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  change_codes(fpu, x87::kC1, 0);
  if (!is_empty(fpu, 0)) set_st(fpu, op->src, X87Register(st(fpu, 0)));
  pop(fpu);
  return done(cpu, op);
}

const Op* load_register(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  const bool empty = is_empty(fpu, op->src), full = !is_empty(fpu, 7);
  const X87Register value = full || empty ? x87::kIndefinite : st(fpu, op->src);
  const uint16_t fault = empty ? kStackUnderflow.status : kStackOverflow.status;
  if (raise_x87(fpu, empty || full ? fault : 0)) push(fpu, value);
  return done(cpu, op);
}

const Op* exchange(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  const bool a_empty = is_empty(fpu, 0), b_empty = is_empty(fpu, op->src);
  if (!raise_x87(fpu, a_empty || b_empty ? kStackUnderflow.status : 0)) return done(cpu, op);
  const X87Register a = a_empty ? x87::kIndefinite : st(fpu, 0);
  const X87Register b = b_empty ? x87::kIndefinite : st(fpu, op->src);
  set_st(fpu, 0, b);
  set_st(fpu, op->src, a);
  return done(cpu, op);
}

// FCMOV: below, equal, below or equal, unordered, and their opposites.
template <unsigned condition>
const Op* move_if(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  if (is_empty(fpu, 0) || is_empty(fpu, op->src)) {
    if (raise_underflow_of_stack(fpu)) set_st(fpu, 0, x87::kIndefinite);
    return done(cpu, op);
  }
  if (cpu.flags.condition<condition>()) set_st(fpu, 0, st(fpu, op->src));
  return done(cpu, op);
}

// FLD1 to FLDZ: the significand rounded to nearest, and its distance to the value rounded down and to the
// value rounded up.
struct Constant {
  uint16_t exponent;
  uint64_t nearest;
  uint8_t below;
  uint8_t above;
};
constexpr Constant kConstants[] = {
    {0x3fff, 0x8000000000000000, 0, 0},  // 1
    {0x4000, 0xd49a784bcd1b8afe, 0, 1},  // log2 10
    {0x3fff, 0xb8aa3b295c17f0bc, 1, 0},  // log2 e
    {0x4000, 0xc90fdaa22168c235, 1, 0},  // pi
    {0x3ffd, 0x9a209a84fbcff799, 1, 0},  // log10 2
    {0x3ffe, 0xb17217f7d1cf79ac, 1, 0},  // ln 2
    {0x0000, 0x0000000000000000, 0, 0},  // 0
};

const Op* load_constant(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  const Constant& constant = kConstants[op->src];
  const unsigned rounding = (cpu.regs.fpu.control >> 10) & 3;  // nearest, down, up, to zero
  uint64_t significand = constant.nearest;
  if (rounding == 2) significand += constant.above;
  if ((rounding & 1) != 0) significand -= constant.below;
  change_codes(cpu.regs.fpu, x87::kC1, 0);
  push_checked(cpu.regs.fpu, {significand, constant.exponent});
  return done(cpu, op);
}

template <bool pops>
const Op* free_register(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  change_codes(cpu.regs.fpu, x87::kC1, 0);
  free_st(cpu.regs.fpu, op->src);
  if (pops) pop(cpu.regs.fpu);
  return done(cpu, op);
}

template <int step>
const Op* turn(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  change_codes(fpu, x87::kC1, 0);
  set_top(fpu, top_of(fpu) + static_cast<unsigned>(step));
  return done(cpu, op);
}

const Op* nothing(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  return done(cpu, op);
}

Handler select_memory_form(const X87Opcode& code) {
  switch (code.number << 3 | code.reg) {  // octal: which of D8 to DF, then ModRM.reg
    case 010:
      return load_real<uint32_t>;
    case 012:
      return store_converted<Single, false>;
    case 013:
      return store_converted<Single, true>;
    case 030:
      return load_integer<int32_t>;
    case 032:
      return store_converted<Dword, false>;
    case 033:
      return store_converted<Dword, true>;
    case 035:
      return load_extended;
    case 037:
      return store_extended;
    case 050:
      return load_real<uint64_t>;
    case 052:
      return store_converted<Double, false>;
    case 053:
      return store_converted<Double, true>;
    case 070:
      return load_integer<int16_t>;
    case 072:
      return store_converted<Word, false>;
    case 073:
      return store_converted<Word, true>;
    case 074:
      return load_decimal;
    case 075:
      return load_integer<int64_t>;
    case 076:
      return store_converted<Decimal, true>;
    case 077:
      return store_converted<Qword, true>;
    default:
      return nullptr;
  }
}

Handler select_register_form(const X87Opcode& code) {
  switch (code.number << 3 | code.reg) {
    case 010:
      return load_register;
    case 011:
    case 051:  // DD C8 and DF C8 are alternative encodings
    case 071:
      return exchange;
    case 012:
      return code.rm == 0 ? nothing : nullptr;
    case 013:
      return store_register_unchecked;
    case 053:
    case 072:  // DF D0 and DF D8, too
    case 073:
      return store_register<true>;
    case 052:
      return store_register<false>;
    case 015:
      return code.rm < 7 ? load_constant : nullptr;
    case 016:
      return code.rm == 6 ? turn<-1> : code.rm == 7 ? turn<1> : nullptr;
    case 020:
      return move_if<2>;
    case 021:
      return move_if<4>;
    case 022:
      return move_if<6>;
    case 023:
      return move_if<10>;
    case 030:
      return move_if<3>;
    case 031:
      return move_if<5>;
    case 032:
      return move_if<7>;
    case 033:
      return move_if<11>;
    case 050:
      return free_register<false>;
    case 070:
      return free_register<true>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_x87_move(const X87Opcode& code, Op& op) {
  op.src = code.rm;
  return code.memory ? select_memory_form(code) : select_register_form(code);
}

}  // namespace slalom::vm
