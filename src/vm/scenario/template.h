// The kernel test that `slalom new kernel-test` writes: complete, with a comment for each line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slalom::vm {

// The part of the kernel that the test is about. Any: an example of every key instead.
enum class KernelTestLike : uint8_t { Any, Net, Fs, Ipc, IoUring };

std::string kernel_test_template(std::string_view name, KernelTestLike like = KernelTestLike::Any);

}  // namespace slalom::vm
