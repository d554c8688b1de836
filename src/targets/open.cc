#include "targets/open.h"

#include "base/file.h"
#include "targets/kernel_test.h"
#include "targets/program.h"
#include "targets/toy.h"
#include "vm/scenario/kernel_test.h"

namespace slalom {

Result<Target> open_target(const std::string& path, const std::vector<std::string>& settings,
                           const std::vector<std::string>& scope, const OpenOptions& options) {
  const Result<std::vector<uint8_t>> content = read_file(path);
  if (content.ok()) {
    const std::string text(content->begin(), content->end());
    if (vm::looks_like_kernel_test(text)) {
      if (!settings.empty())
        return error("{} is a kernel test, which has no parameters: leave out --set", path);
      return open_kernel_test(path, text, scope, options);
    }
  }
  for (const auto& [given, option] :
       {std::pair(!scope.empty(), "--scope"), std::pair(!options.kernel.empty(), "--kernel"),
        std::pair(!options.module_directory.empty(), "--modules")})
    if (given) return error("{} is no kernel test: leave out {}", path, option);
  return open_toy(path, settings);
}

Result<Target> open_target(const TargetId& id, const OpenOptions& options) {
  if (id.kind == "toy") return open_toy(id);
  if (id.kind == "program") return open_program(id, "", nullptr);
  if (id.kind == "kernel") return open_kernel_test(id, options);
  if (id.kind == "check")
    return error(
        "this capsule is of a slalom::check in {}: run that test with SLALOM_REPLAY=CAPSULE in its "
        "environment",
        id.content);
  return error("this capsule is of a {} target, which this slalom cannot run; update slalom", id.kind);
}

}  // namespace slalom
