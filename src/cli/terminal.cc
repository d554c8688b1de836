#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>

#include "cli/command.h"

namespace slalom {
namespace {

// A signal handler can reach nothing else.
std::atomic<bool> interrupt_seen{false};

void on_interrupt(int signal) {
  if (interrupt_seen.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

bool is_terminal(int descriptor) {
  return isatty(descriptor) == 1;
}

size_t terminal_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::clamp<size_t>(size.ws_col, 40, 160);
  return 100;
}

Style output_style() {
  return Style{is_terminal(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr};
}

void watch_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return interrupt_seen.load();
}

}  // namespace slalom
