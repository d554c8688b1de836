// Runs a bare-metal program or a small kernel in the virtual machine and checks its output.
//
//   run_bare KERNEL [--cpus N] [--expect FILE] [--stop STOP]
//
// Every program runs twice, once in one go and once in slices of many sizes. Console, end and state hashes
// must be equal. Without --expect, all lines must be "ok ..." and the last one "done N". --stop names another
// end than the debug exit port with code 0 (which the port turns into 1, as QEMU's does): reset, idle,
// "triple fault".
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "vm/boot/boot.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMostInstructions = 400'000'000, kHashEvery = 1'000'000;

struct Wanted {
  std::string kernel, expect, stop = "exit 1";
  unsigned cpus = 1;
};

struct Ran {
  std::string console, stop;
  uint64_t executed = 0;
  std::vector<uint64_t> hashes;
  bool operator==(const Ran&) const = default;
};

std::string stop_text(Pc& pc, PcStop stop) {
  switch (stop) {
    case PcStop::Budget:
      return "limit";
    case PcStop::PowerOff:
      return "power-off";
    case PcStop::Reset:
      return "reset";
    case PcStop::Shutdown:
      return "triple fault";
    case PcStop::Exit:
      return fmt::format("exit {}", pc.exit_code());
    case PcStop::Idle:
      return "idle";
    case PcStop::Unknown:
      return "not implemented: " + pc.trouble();
    case PcStop::Place:
    case PcStop::Access:
    case PcStop::Halted:
    case PcStop::Paused:
    case PcStop::Event:
    case PcStop::Hypercall:
    case PcStop::Window:
      break;  // only stops on request
  }
  return "stopped";
}

Result<Ran> run(const Wanted& wanted, const std::vector<uint64_t>& slices) {
  BootOptions options{.kernel = wanted.kernel};
  options.pc.cpus = wanted.cpus;
  TRY_ASSIGN(Booted machine, boot(options));
  Pc& pc = *machine.pc;
  Ran ran;
  PcStop stop = PcStop::Budget;
  for (size_t i = 0; stop == PcStop::Budget && pc.executed() < kMostInstructions; ++i) {
    stop = pc.run(std::min(slices[i % slices.size()], kHashEvery - pc.executed() % kHashEvery));
    ran.console += pc.devices().take_console_output();
    if (pc.executed() % kHashEvery == 0) ran.hashes.push_back(pc.state_hash());
  }
  ran.hashes.push_back(pc.state_hash());
  ran.stop = stop_text(pc, stop);
  ran.executed = pc.executed();
  return ran;
}

bool all_good(const std::string& console) {
  std::string last;
  for (size_t at = 0; at < console.size();) {
    const size_t end = std::min(console.find('\n', at), console.size());
    last = console.substr(at, end - at);
    if (!last.starts_with("ok ") && !last.starts_with("done ")) return false;
    at = end + 1;
  }
  return last.starts_with("done ");
}

int judge(const Wanted& wanted) {
  const Result<Ran> whole = run(wanted, {kHashEvery}), sliced = run(wanted, {1, 2, 3, 5, 8, 64, 997});
  if (!whole.ok() || !sliced.ok()) {
    std::cerr << (whole.ok() ? sliced : whole).error().message << "\n";
    return 1;
  }
  std::cout << whole->console;
  bool good = true;
  const auto complain = [&](const std::string& text) {
    std::cout << "PROBLEM: " << text << "\n";
    good = false;
  };
  if (whole->stop != wanted.stop) complain("it ended with " + whole->stop + ", not " + wanted.stop);
  if (*whole != *sliced)
    complain(fmt::format("in slices it is another run: {} instructions, not {}", sliced->executed,
                         whole->executed));
  if (wanted.expect.empty()) {
    if (!all_good(whole->console)) complain("not all of its lines are good");
  } else {
    std::ifstream file(wanted.expect);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text != whole->console) complain("it did not print what " + wanted.expect + " holds");
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace slalom::vm

int main(int argc, char** argv) {
  slalom::vm::Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--cpus")
      wanted.cpus = static_cast<unsigned>(std::atoi(value)), ++i;
    else if (word == "--expect")
      wanted.expect = value, ++i;
    else if (word == "--stop")
      wanted.stop = value, ++i;
    else
      wanted.kernel = word;
  }
  return slalom::vm::judge(wanted);
}
