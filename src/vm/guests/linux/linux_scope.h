// Finds the code of a Linux kernel that a search treats in a special way, by the names of functions and
// modules.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/symbol_table.h"
#include "vm/control/scope.h"

namespace slalom::vm {

// "module:abba", "function:pipe_read", "function:pipe_*".
bool is_scope(std::string_view text);
inline constexpr std::string_view kScopeAdvice =
    "a scope is \"module:NAME\", \"function:NAME\" or \"function:BEGINNING*\"";
// Fails if a name matches nothing. The functions of the scheduler, timekeeping, RCU, allocators and printk
// are ignored: what a function of the scope calls there does not belong to the scope.
Result<Scope> find_scope(const SymbolTable& symbols, std::span<const std::string> wanted);

// Without a scope, a search does not switch in the scheduler and in timekeeping unless the user asks for it.
// CPUs look at each other's queues and clocks all the time, under locks of their own. These locks are choice
// points all the same, but the accesses under them would be most of all choice points and tell nothing about
// a test.
std::vector<CodeRange> scheduling_code(const SymbolTable& symbols);  // sorted
// The code of all loaded modules: drivers share memory with their own interrupts and timers.
CodeRange module_code(const SymbolTable& symbols);

}  // namespace slalom::vm
