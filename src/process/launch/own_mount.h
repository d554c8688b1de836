// OwnMount: mounts a folder over another one for one process. So the folder's name is the same for every
// process that has a copy of its own. Other processes do not see it: the process gets a mount namespace, and
// a user namespace if the mount needs one. Some containers and systems forbid both.
#pragma once

#include <string>

namespace slalom {

struct OwnMount {
  std::string folder, at;  // absolute paths
  // Identity maps of user and group for the user namespace.
  std::string users, groups;

  static OwnMount of(const std::string& folder, const std::string& at);
  // Mounts for the calling process. Callable between fork() and exec: allocates no memory. Returns false if
  // that is not possible here.
  bool show() const;
};

}  // namespace slalom
