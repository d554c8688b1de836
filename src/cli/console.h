// Console: the guest's serial line on the user's terminal, or on pipes.
//
// Where both ends are a terminal, the guest's console is that terminal: every key goes to the guest, Ctrl-C
// too, and the terminal obeys what the guest sends. Ctrl-] ends. Anywhere else the console is text: control
// characters other than newlines and tabs are replaced, since files and pipes are shown on terminals later.
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
  void end_output();  // shows what is left of it
  // What was typed or piped since the last call. `wait`: there is time to wait a little for it.
  std::string input(bool wait);
  void restore();

 private:
  bool interactive_ = false;
  bool changed_ = false;
  bool ended_ = false;
  bool open_ = true;
  std::string unfinished_;  // the start of a character whose rest is still to come
  termios before_{};
};

}  // namespace slalom
