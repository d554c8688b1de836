// Console: connects the guest's serial line to the user's terminal or to pipes.
//
// If both ends are a terminal, the guest's console is that terminal: it gets every key, Ctrl-C too, and the
// terminal obeys the guest's output. Ctrl-] ends the session. Otherwise the console is text: control
// characters other than newlines and tabs are replaced, because files and pipes are later shown on terminals.
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
  void end_output();  // shows the rest of the output
  // Returns the input since the last call. With `wait`, may wait a little for input.
  std::string input(bool wait);
  void restore();

 private:
  bool interactive_ = false;
  bool changed_ = false;
  bool ended_ = false;
  bool open_ = true;
  std::string unfinished_;  // first bytes of an incomplete character
  termios before_{};
};

}  // namespace slalom
