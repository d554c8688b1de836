#include "cli/core/console.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <utility>

#include "base/text/printable.h"
#include "cli/core/command.h"

namespace slalom {

constexpr char kEnd = 0x1d;  // Ctrl-]

Console::Console(bool shows) {
  interactive_ = shows && is_terminal(STDIN_FILENO) && is_terminal(STDOUT_FILENO);
  if (!interactive_) return;
  std::cerr << "(every key goes to the guest; Ctrl-] ends)\n";
  if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
  termios raw = before_;
  cfmakeraw(&raw);
  raw.c_oflag |= OPOST;  // translates line ends of the guest to those of the host
  changed_ = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void Console::restore() {
  if (changed_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  changed_ = false;
}

void Console::output(const std::string& text) {
  if (interactive_) {
    std::cout << text << std::flush;
    return;
  }
  // Removes carriage returns, because a serial line ends lines with two characters and files and pipes want
  // one.
  for (char c : text)
    if (c != '\r') unfinished_ += c;
  const size_t rest = unfinished_length(unfinished_);
  const std::string complete = unfinished_.substr(0, unfinished_.size() - rest);
  unfinished_.erase(0, complete.size());
  std::cout << printable_lines(complete) << std::flush;
}

void Console::end_output() {
  std::cout << printable_lines(std::exchange(unfinished_, {})) << std::flush;
}

std::string Console::input(bool wait) {
  if (!open_) return {};
  pollfd poll_for{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (poll(&poll_for, 1, interactive_ && wait ? 20 : 0) <= 0) return {};
  char buffer[4096];
  const ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
  if (size <= 0) {
    open_ = size < 0 && errno == EINTR;
    return {};
  }
  std::string text(buffer, static_cast<size_t>(size));
  if (interactive_) {
    if (const size_t end = text.find(kEnd); end != std::string::npos) {
      ended_ = true;
      text.resize(end);
    }
  }
  return text;
}

}  // namespace slalom
