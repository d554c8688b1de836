#include "vm/control/kernel_console.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace slalom::vm {
namespace {

constexpr size_t kMostConsoleLine = 4096;  // bytes; the rest of a longer line is dropped

bool has_any(std::string_view line, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

}  // namespace

void KernelConsole::begin() {
  pc_.devices().take_console_output();
  state_ = State{};
}

void KernelConsole::restore(const State& state) {
  pc_.devices().take_console_output();
  state_ = state;
}

void KernelConsole::read() {
  Devices& devices = pc_.devices();
  if (!devices.has_console_output()) return;
  for (const char c : devices.take_console_output()) {
    if (c == '\r') continue;
    if (c == '\n')
      on_line(std::exchange(state_.line, {}));
    else if (state_.line.size() < kMostConsoleLine)
      state_.line += c;
  }
}

void KernelConsole::finish_line() {
  if (!state_.line.empty()) on_line(std::exchange(state_.line, {}));
}

void KernelConsole::on_line(const std::string& line) {
  if (events_.natural() && state_.reported) return;  // consequences of the reported failure
  events_.emit(pc_.executed(), state_.speaker, OpKind::Console, pc_.cpu(state_.speaker).gpr(kRip), {}, 0,
               line);
  state_.dying = state_.dying || has_any(line, guest_.failed);
  if (!state_.dying) return;
  state_.traced = state_.traced || has_any(line, guest_.traced);
  state_.reported = state_.reported || has_any(line, guest_.reported) ||
                    (events_.natural() && has_any(line, guest_.reported_by_check));
}

}  // namespace slalom::vm
