#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "cli/core/command.h"

namespace slalom {
namespace {

// Global, because a signal handler can reach nothing else.
std::atomic<bool> interrupt_seen{false};
std::atomic<const char*> interrupt_words{""};

// Writes the line in the handler, whatever the process is doing.
void on_interrupt(int signal) {
  if (interrupt_seen.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  const int error = errno;
  const auto put = [](const char* text) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, strlen(text));
  };
  if (isatty(STDERR_FILENO) == 1) put("\r\033[K");
  put("slalom: ");
  put(interrupt_words);
  put(" (again: at once)\n");
  errno = error;
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

void watch_interrupt(const char* what_follows) {
  interrupt_words = what_follows;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return interrupt_seen.load();
}

OpenOptions open_options() {
  OpenOptions options;
  options.stop = interrupted;
  if (is_terminal(STDERR_FILENO))
    options.progress = [](const std::string& line) {
      std::cerr << "\r\033[K";
      if (!line.empty()) std::cerr << "  " << fit(printable(line), terminal_width(STDERR_FILENO) - 3);
      std::cerr << std::flush;
    };
  return options;
}

}  // namespace slalom
