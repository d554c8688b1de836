// What detectors of a kernel's memory have in common: which functions are the allocators' own, and which one
// of those that led to an allocation, a free or a use says most to a reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detect/core/detector.h"
#include "detect/kernels/kernel_context.h"

namespace slalom {

// What Event::state of an Alloc says: pages, whatever for; or, at the end, not an allocation but how many
// (`value`) of those made at `pc` stay when whole calls run one after the other.
inline constexpr uint64_t kOfPages = 1, kMayStay = 2;

// When something happened to an object.
struct KernelMoment {
  Site site;  // no agent: not seen
  uint32_t path = 0;
};

bool is_allocator_function(std::string_view function);
std::string telling_function(const KernelMoment& moment, const KernelContext& context, const Names& names);
// "by reader in f+0x12 <- g+0x34"
std::string moment_text(const KernelMoment& moment, const KernelContext& context, const Names& names);

}  // namespace slalom
