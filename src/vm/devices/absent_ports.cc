#include "vm/devices/absent_ports.h"

namespace slalom::vm {

namespace {

constexpr AbsentPorts kAbsent[] = {
    {0x000, 0x00f, "DMA controller 1 (old kernels reset it)"},
    {0x02e, 0x02f, "super I/O (serial and sensor drivers probe it)"},
    {0x04e, 0x04f, "super I/O, second address"},
    {0x062, 0x062, "embedded controller data"},
    {0x066, 0x066, "embedded controller command"},
    {0x081, 0x08f, "DMA page registers"},
    {0x0c0, 0x0df, "DMA controller 2"},
    {0x0f0, 0x0f1, "FPU error latch (kernels that use IRQ 13 clear it)"},
    {0x170, 0x177, "IDE, second channel"},
    {0x1ce, 0x1cf, "Bochs display extensions"},
    {0x1f0, 0x1f7, "IDE, first channel"},
    {0x200, 0x207, "game port"},
    {0x278, 0x27a, "parallel port LPT2; ISA plug and play"},
    {0x2e8, 0x2ef, "COM4"},
    {0x2f8, 0x2ff, "COM2"},
    {0x370, 0x375, "floppy, second controller"},
    {0x376, 0x376, "IDE, second channel, control"},
    {0x378, 0x37a, "parallel port LPT1"},
    {0x3b0, 0x3bf, "monochrome display; parallel port LPT3"},
    {0x3e8, 0x3ef, "COM3"},
    {0x3f0, 0x3f5, "floppy"},
    {0x3f6, 0x3f6, "IDE, first channel, control"},
    {0x3f7, 0x3f7, "floppy"},
    {0x510, 0x511, "QEMU firmware configuration"},
    {0xa79, 0xa79, "ISA plug and play"},
    {0xcf8, 0xcf8, "PCI configuration address"},
    {0xcfa, 0xcff, "PCI configuration address and data (cf9 is the reset control)"},
    {0x5658, 0x565f, "VMware backdoor"},
};

}  // namespace

const AbsentPorts* find_absent(uint16_t port) {
  for (const AbsentPorts& entry : kAbsent)
    if (port >= entry.first && port <= entry.last) return &entry;
  return nullptr;
}

}  // namespace slalom::vm
