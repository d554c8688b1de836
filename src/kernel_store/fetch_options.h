// FetchOptions: where kernels are fetched from, and whom to trust.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace slalom::vm {

struct FetchOptions {
  std::string mirror;  // used instead of the configured mirrors; empty: use these
  enum class Trust {
    Signed,
    Anyone
  } trust = Trust::Signed;        // Anyone: packages of `mirror` need no signature
  std::filesystem::path keyring;  // the keys that must have signed; empty: Debian's
  std::filesystem::path apt_configuration = "/etc/apt";
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

}  // namespace slalom::vm
