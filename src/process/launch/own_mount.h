// OwnMount: shows a process another folder in the place of one, so that the folder's name is the same for
// every process that has a copy of its own. No other process sees it: this one gets a mount namespace, and a
// user namespace where that needs one. Some containers and systems forbid both.
#pragma once

#include <string>

namespace slalom {

struct OwnMount {
  std::string folder, at;     // absolute
  std::string users, groups;  // who the process is, in a user namespace: the same

  static OwnMount of(const std::string& folder, const std::string& at);
  // For the calling process, from fork() on: allocates nothing. False: it is not possible here.
  bool show() const;
};

}  // namespace slalom
