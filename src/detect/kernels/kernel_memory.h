// Shared code of the detectors of kernel memory: which functions belong to the allocators, and which function
// on the way to an allocation, a free or a use says most to a reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detect/core/detector.h"
#include "detect/kernels/kernel_context.h"

namespace slalom {

// A moment in the life of an object.
struct KernelMoment {
  Site site;  // no agent if not seen
  uint32_t path = 0;
};

bool is_allocator_function(std::string_view function);
std::string telling_function(const KernelMoment& moment, const KernelContext& context, const Names& names);
// "by reader in f+0x12 <- g+0x34"
std::string moment_text(const KernelMoment& moment, const KernelContext& context, const Names& names);

}  // namespace slalom
