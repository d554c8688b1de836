// Linux's system calls for x86-64 by name and number, the constants of its headers, and its errors.
//
// The tables are generated (scripts/generate-call-tables). What a call does with its arguments is not known
// here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace slalom {

std::optional<uint32_t> system_call_number(std::string_view name);
std::string_view system_call_name(uint32_t number);  // empty: there is none
inline constexpr uint32_t kMaxSystemCall = 1023;     // what a program may ask for, known or not

std::optional<int64_t> linux_constant(std::string_view name);

// Names like the given one, for messages: " (did you mean open, openat?)", or nothing.
std::string similar_system_calls(std::string_view name);
std::string similar_constants(std::string_view name);

// What a call returned, for people: "3", "-ENOENT", "0x7f0012340000".
std::string describe_result(int64_t value);

}  // namespace slalom
