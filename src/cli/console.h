// Console: the guest's serial line on the user's terminal, or on pipes.
//
// On a terminal every key goes to the guest, Ctrl-C too; Ctrl-] ends.
#pragma once

#include <termios.h>

#include <string>

namespace slalom {

class Console {
 public:
  explicit Console(bool shows);
  ~Console() { restore(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool interactive() const { return interactive_; }
  bool ended() const { return ended_; }
  void output(const std::string& text);
  // What was typed or piped since the last call. `wait`: there is time to wait a little for it.
  std::string input(bool wait);
  void restore();

 private:
  bool interactive_ = false;
  bool changed_ = false;
  bool ended_ = false;
  bool open_ = true;
  termios before_{};
};

}  // namespace slalom
