// Snapshots: a whole machine in a file, so that a kernel is booted once and goes on from there for ever, in
// any process.
//
// A file holds what the guest can observe and nothing else: registers, devices and the pages of RAM that are
// not zero, in chunks, each compressed for itself; besides that, which kernel runs in it. It is a container
// (base/container.h), so every damage is noticed. What it holds is trusted no more than any other file: sizes
// and ranges are checked, and the hash of the machine that comes out must be the one that went in.
//
// Another version of the machine might go on differently from the same state. So its files are refused, not
// converted: booting again is cheap.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "vm/boot/boot.h"

namespace slalom::vm {

// Hashes the machine on the way, which changes nothing that the guest can observe.
Result<void> save_snapshot(const std::filesystem::path& path, Booted& machine);
Result<Booted> load_snapshot(const std::filesystem::path& path);

// The same with the payload of such a file.
Result<std::vector<uint8_t>> encode_snapshot(Booted& machine);
Result<Booted> decode_snapshot(std::span<const uint8_t> payload);

}  // namespace slalom::vm
