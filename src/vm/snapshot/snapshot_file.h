// Snapshots: a whole machine in a file. A kernel is booted once, and later processes go on from there.
//
// A file holds only what the guest can observe: registers, devices and the pages of RAM that are not zero, in
// chunks that are compressed separately. It also names the kernel. It is a container (base/container.h), so
// damage is always noticed. The contents are not trusted: sizes and ranges are checked, and the hash of the
// loaded machine must equal the hash of the saved one.
//
// Another version of the machine might go on differently from the same state. Its files are refused, not
// converted, because booting again is cheap.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "vm/boot/boot.h"

namespace slalom::vm {

// Hashes the machine, which changes nothing that the guest can observe.
Result<void> save_snapshot(const std::filesystem::path& path, Booted& machine);
Result<Booted> load_snapshot(const std::filesystem::path& path);

// The same with the payload of such a file.
Result<std::vector<uint8_t>> encode_snapshot(Booted& machine);
Result<Booted> decode_snapshot(std::span<const uint8_t> payload);

}  // namespace slalom::vm
