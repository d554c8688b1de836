// Boots debian:6.1 with a command, its console on standard output as soon as anything appears there, with or
// without every access, call and edge observed: slalom's side of bench/beside_qemu, which times the markers
// it prints.
//
// Usage: guest_work plain|observed CPUS COMMAND
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "checksum.h"
#include "vm/boot/boot.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kSlice = 200'000;  // short beside what is measured

int run(const std::string& how, unsigned cpus, const std::string& command) {
  Result<Booted> machine =
      boot({.append = "loglevel=6 earlycon=uart8250,io,0x3f8", .run = command, .pc = {.cpus = cpus}});
  if (!machine.ok()) {
    std::cerr << "guest_work: " << machine.error().message << "\n";
    return 1;
  }
  Pc& pc = *machine->pc;
  Checksum checksum;
  Tap tap(checksum, {.calls = true, .edges = true});
  if (how == "observed") pc.attach(&tap);
  PcStop stop = PcStop::Budget;
  while (stop == PcStop::Budget) {
    stop = pc.run(kSlice);
    std::cout << pc.devices().take_console_output() << std::flush;
  }
  std::cerr << fmt::format("{} instructions, {} accesses, checksum {:016x}\n", pc.executed(),
                           checksum.accesses(), checksum.value());
  return stop == PcStop::Unknown ? 1 : 0;
}

}  // namespace
}  // namespace slalom::vm

int main(int count, char** arguments) {
  const std::string how = count == 4 ? arguments[1] : "";
  const int cpus = count == 4 ? std::atoi(arguments[2]) : 0;
  if ((how != "plain" && how != "observed") || cpus < 1 || cpus > 8) {
    std::cerr << "usage: guest_work plain|observed CPUS COMMAND\n";
    return 2;
  }
  return slalom::vm::run(how, static_cast<unsigned>(cpus), arguments[3]);
}
