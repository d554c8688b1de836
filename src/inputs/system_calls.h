// System calls of Linux for x86-64 by name and number, constants of its headers, and its errors.
//
// scripts/generate-call-tables generates the tables. They do not describe the arguments of calls.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace slalom {

std::optional<uint32_t> system_call_number(std::string_view name);
std::string_view system_call_name(uint32_t number);  // empty if there is none
inline constexpr uint32_t kMaxSystemCall = 1023;  // the largest number that a program may use, known or not

std::optional<int64_t> linux_constant(std::string_view name);

// Returns names like the given one, for messages: " (did you mean open, openat?)"; empty if there are none.
std::string similar_system_calls(std::string_view name);
std::string similar_constants(std::string_view name);
std::string similar_names(std::string_view name, std::span<const std::string_view> names);

// Returns a call's result for people: "3", "-ENOENT", "0x7f0012340000".
std::string describe_result(int64_t value);

}  // namespace slalom
