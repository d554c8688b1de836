// The kernel test that `slalom new kernel-test` writes: complete, with a comment for each line.
#pragma once

#include <string>
#include <string_view>

namespace slalom::vm {

std::string kernel_test_template(std::string_view name);

}  // namespace slalom::vm
