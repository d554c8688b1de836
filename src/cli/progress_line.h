// ProgressLine: what a search is doing, in one line that is rewritten in place; on a terminal only.
#pragma once

#include <string>

#include "campaign/campaign.h"

namespace slalom {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const Progress& progress);
  void clear();

 private:
  bool on_;
  bool shown_ = false;
};

// The phase, how much of how much is done, and the time that is left: as far as they are known.
std::string in_words(const Progress& progress);

}  // namespace slalom
