// ProgressLine: shows a search's progress in one line that is rewritten in place. On terminals only.
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

// Returns the phase, the amounts done and in total, and the remaining time, as far as they are known.
std::string in_words(const Progress& progress);

}  // namespace slalom
