// The old devices and the CPU's reaction to their interrupts: PIC, PIT, RTC, keyboard controller, VGA text,
// UART; HLT, and the shadows of STI and MOV SS. apic.cc tests the newer interrupt controllers.
#include "bare.h"

extern "C" char shadow_1[], shadow_2[], shadow_3[];

namespace {
constexpr unsigned kFirst = 0x20;  // vectors of the two controllers

void end_of_interrupt(unsigned irq) {
  if (irq >= 8) out8(0xa0, 0x20);
  out8(0x20, 0x20);
}

void start_pic() {
  out8(0x20, 0x11);
  out8(0xa0, 0x11);
  out8(0x21, kFirst);
  out8(0xa1, kFirst + 8);
  out8(0x21, 4);
  out8(0xa1, 2);
  out8(0x21, 1);
  out8(0xa1, 1);
  out8(0x21, 0xff);
  out8(0xa1, 0xff);
}

uint8_t requests(uint16_t port) {
  out8(port, 0x0a);
  return in8(port);
}
uint8_t in_service(uint16_t port) {
  out8(port, 0x0b);
  return in8(port);
}

volatile unsigned ticks;
volatile word tick_at;

void one_shot(uint16_t count) {  // channel 0, mode 0: interrupts once
  out8(0x43, 0x30);
  out8(0x40, static_cast<uint8_t>(count));
  out8(0x40, static_cast<uint8_t>(count >> 8));
}
void wait_for_request() {
  while ((requests(0x20) & 1) == 0) {
  }
}

void pic_and_pit() {
  start_pic();
  check("PIC: mask reads back", in8(0x21), 0xff);
  hooks[kFirst] = [](Frame* frame) {
    ++ticks;
    tick_at = frame->ip;
    check("PIC: in service", in_service(0x20), 1);
    end_of_interrupt(0);
  };
  one_shot(2000);
  wait_for_request();
  check("PIT: raised its line", requests(0x20) & 1, 1);
  asm volatile("sti; nop; nop; cli");
  check("PIC: masked", ticks, 0);
  out8(0x21, 0xfe);
  asm volatile("nop; nop");
  check("IF off", ticks, 0);
  // After STI one instruction runs first.
  asm volatile("sti\n .globl shadow_1; shadow_1: nop; nop; cli");
  check("interrupt after STI and one instruction", ticks, 1);
  check("... there", tick_at, address_of(shadow_1) + 1);
  check("PIC: request is gone", requests(0x20) & 1, 0);
  check("PIC: nothing in service", in_service(0x20), 0);
  // STI; CLI delivers no interrupt.
  one_shot(2000);
  wait_for_request();
  asm volatile("sti; cli; nop; nop");
  check("STI, CLI: none", ticks, 1);
  // MOV SS after STI shields one more instruction.
  asm volatile(
      "mov %%ss, %%ecx; sti\n mov %%ecx, %%ss\n .globl shadow_2; shadow_2: nop\n .globl shadow_3; "
      "shadow_3: nop; cli" ::
          : "ecx");
  check("interrupt once", ticks, 2);
  if (under_slalom())
    check("STI and MOV SS: the shadow does not add up",
          tick_at == address_of(shadow_2) || tick_at == address_of(shadow_3), 1);
  // POPF has no shadow.
  one_shot(2000);
  wait_for_request();
  asm volatile("pushf; orl $0x200, (" STACK_POINTER "); popf\n .globl after_popf; after_popf: nop; cli" ::
                   : "memory", "cc");
  check("POPF: at once", ticks, 3);
  // HLT wakes up.
  one_shot(5000);
  asm volatile("sti; hlt; cli");
  check("HLT wakes up", ticks, 4);
  // Periodic mode: ticks continue by themselves.
  out8(0x43, 0x34);
  out8(0x40, 0xe8);
  out8(0x40, 0x03);
  hooks[kFirst] = [](Frame*) {
    ++ticks;
    end_of_interrupt(0);
  };
  ticks = 0;
  while (ticks < 5) asm volatile("sti; hlt; cli");
  check("PIT: periodic", ticks, 5);
  // Latched counts decrease.
  out8(0x21, 0xff);
  out8(0x43, 0x34);
  out8(0x40, 0xff);
  out8(0x40, 0xff);
  const auto count = [] {
    out8(0x43, 0);
    const unsigned low = in8(0x40);
    return low | in8(0x40) << 8;
  };
  const unsigned first = count();
  spend(1000);
  check("PIT: counts down", count() < first, 1);
  // Without an end-of-interrupt, no interrupt of the same or lower priority arrives.
  out8(0x43, 0x34);
  out8(0x40, 0xe8);
  out8(0x40, 0x03);
  hooks[kFirst] = [](Frame*) { ++ticks; };
  ticks = 0;
  out8(0x21, 0xfe);
  asm volatile("sti");
  while (ticks == 0 || (requests(0x20) & 1) == 0) {
  }
  spend(1000);
  asm volatile("cli");
  check("PIC: no second one before the end of the first", ticks, 1);
  end_of_interrupt(0);
  out8(0x21, 0xff);
  one_shot(1);
  out8(0x43, 0x30);  // stops it, since no count follows
  // PIT channel 2, controlled by its gate.
  out8(0x61, (in8(0x61) & 0xfc) | 1);
  out8(0x43, 0xb0);
  out8(0x42, 0xd0);
  out8(0x42, 0x07);
  check("PIT: channel 2's output is low at first", in8(0x61) & 0x20, 0);
  while ((in8(0x61) & 0x20) == 0) {
  }
  check("PIT: channel 2 ends", in8(0x61) & 0x20, 0x20);
}

uint8_t rtc(uint8_t index) {
  out8(0x70, index);
  return in8(0x71);
}
void set_rtc(uint8_t index, uint8_t value) {
  out8(0x70, index);
  out8(0x71, value);
}

void real_time_clock() {
  while (rtc(0xa) & 0x80) {
  }
  const bool binary = (rtc(0xb) & 4) != 0;
  const auto value = [&](uint8_t index) {
    const uint8_t v = rtc(index);
    return binary ? v : (v >> 4) * 10 + (v & 15);
  };
  check("RTC: seconds", value(0) < 60, 1);
  check("RTC: minutes", value(2) < 60, 1);
  check("RTC: day", value(7) >= 1 && value(7) <= 31, 1);
  check("RTC: month", value(8) >= 1 && value(8) <= 12, 1);
  check("RTC: valid", rtc(0xd) & 0x80, 0x80);
  set_rtc(0x50, 0xa7);
  check("RTC: memory", rtc(0x50), 0xa7);
  // Periodic interrupts on line 8, through the second controller.
  static volatile unsigned count;
  static volatile uint8_t cause;
  hooks[kFirst + 8] = [](Frame*) {
    ++count;
    cause = rtc(0xc);
    check("PIC: second one in service", in_service(0xa0), 1);
    check("PIC: cascade in service", in_service(0x20), 4);
    end_of_interrupt(8);
  };
  rtc(0xc);
  set_rtc(0xa, 0x26);
  set_rtc(0xb, static_cast<uint8_t>(rtc(0xb) | 0x40));
  out8(0x21, 0xfb);
  out8(0xa1, 0xfe);
  while (count < 2) asm volatile("sti; hlt; cli");
  check("RTC: periodic", cause & 0xc0, 0xc0);
  set_rtc(0xb, static_cast<uint8_t>(rtc(0xb) & ~0x40));
  out8(0x21, 0xff);
  out8(0xa1, 0xff);
  rtc(0xc);
}

void keyboard() {
  const auto drain = [] {
    while (in8(0x64) & 1) in8(0x60);
  };
  const auto answer = [] {
    while ((in8(0x64) & 1) == 0) {
    }
    return in8(0x60);
  };
  drain();
  out8(0x64, 0xaa);
  check("keyboard controller: self test", answer(), 0x55);
  out8(0x64, 0xab);
  check("keyboard controller: interface test", answer(), 0);
  out8(0x64, 0x20);
  const uint8_t configuration = answer();
  out8(0x60, 0xee);
  check("keyboard: echo", answer(), 0xee);
  out8(0x60, 0xff);
  check("keyboard: reset is acknowledged", answer(), 0xfa);
  check("keyboard: passed its test", answer(), 0xaa);
  static volatile uint8_t code;
  hooks[kFirst + 1] = [](Frame*) {
    code = in8(0x60);
    end_of_interrupt(1);
  };
  drain();
  out8(0x64, 0x60);
  out8(0x60, static_cast<uint8_t>((configuration | 1) & ~0x10));
  requests(0x20);
  out8(0x21, 0xfd);
  out8(0x64, 0xd2);  // as if the keyboard had sent it
  out8(0x60, 0x1e);
  for (unsigned i = 0; i < 1000 && code == 0; ++i) asm volatile("sti; nop; nop; cli");
  check("keyboard: interrupt with a scan code", code, 0x1e);
  out8(0x21, 0xff);
}

void screen() {
  volatile uint16_t* text = reinterpret_cast<volatile uint16_t*>(0xb8000);
  text[0] = 0x0741;
  text[1999] = 0x1f5a;
  check("VGA: memory reads back", text[0], 0x0741);
  check("VGA: last cell", text[1999], 0x1f5a);
  out8(0x3d4, 0x0e);
  out8(0x3d5, 0x03);
  out8(0x3d4, 0x0f);
  out8(0x3d5, 0x21);
  check("VGA: cursor, low", in8(0x3d5), 0x21);
  out8(0x3d4, 0x0e);
  check("VGA: cursor, high", in8(0x3d5), 0x03);
}

void serial() {
  const uint8_t line = in8(0x3fb);
  out8(0x3fb, 0x83);
  out8(0x3f8, 0x01);
  out8(0x3f9, 0x00);
  const uint8_t divisor = in8(0x3f8);  // printing is not possible now
  out8(0x3fb, 0x03);
  check("UART: divisor", divisor, 1);
  check("UART: line control", in8(0x3fb), 3);
  out8(0x3ff, 0x5a);
  check("UART: scratch", in8(0x3ff), 0x5a);
  // In loopback mode, modem lines and data are returned.
  out8(0x3fc, 0x1f);
  const uint8_t modem = in8(0x3fe);
  out8(0x3f8, 'L');
  while ((in8(0x3fd) & 1) == 0) {
  }
  const uint8_t looped = in8(0x3f8);
  out8(0x3fc, 0x0b);
  check("UART: loop, modem lines", modem & 0xf0, 0xf0);
  check("UART: loop, data", looped, 'L');
  // An empty transmitter interrupts on line 4.
  static volatile unsigned count;
  static volatile uint8_t cause;
  hooks[kFirst + 4] = [](Frame*) {
    cause = in8(0x3fa);
    out8(0x3f9, 0);
    ++count;
    end_of_interrupt(4);
  };
  out8(0x21, 0xef);
  out8(0x3f9, 2);
  for (unsigned i = 0; i < 10000 && count == 0; ++i) asm volatile("sti; nop; nop; cli");
  check("UART: interrupt", count, 1);
  check("UART: its cause", cause & 0xf, 2);
  out8(0x21, 0xff);
  out8(0x3fb, line);
}

}  // namespace

void run_tests() {
  pic_and_pit();
  real_time_clock();
  keyboard();
  screen();
  serial();
}
