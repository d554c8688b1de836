#include "process/program_scope.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "symbols/demangle.h"
#include "symbols/loops.h"

namespace slalom {
namespace {

using preload::ScopedCode;
using Kind = ScopedCode::Kind;

// The functions with which a program and its libraries use an allocator.
constexpr std::string_view kAllocator[] = {"malloc", "calloc",         "realloc",  "free",
                                           "cfree",  "posix_memalign", "memalign", "aligned_alloc",
                                           "valloc", "pvalloc"};
constexpr std::string_view kOperators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};

// "Stack<int>::push" -> "Stack::push"
std::string without_template_arguments(const std::string& name) {
  std::string result;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<';
    if (depth == 0) result += name[i];
    depth -= depth > 0 && name[i] == '>';
  }
  return result;
}

bool has_function(const CodePart& part, const std::string& symbol) {
  // The compiler splits functions into parts such as "push.cold" and "push.part.0".
  if (part.matches_function(symbol) || part.matches_function(symbol.substr(0, symbol.find('.')))) return true;
  const std::string name = short_name(symbol);
  return part.matches_function(name) || part.matches_function(without_template_arguments(name));
}

bool is_module(std::string_view wanted, const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  if (wanted == path || wanted == file) return true;
  return file.starts_with(wanted) && (file[wanted.size()] == '.' || wanted.ends_with(".so"));
}

bool is_of_allocator(const std::string& symbol) {
  return std::ranges::count(kAllocator, symbol) > 0 ||
         std::ranges::any_of(kOperators, [&](std::string_view name) { return symbol.starts_with(name); });
}

}  // namespace

Result<void> check_scope(std::string_view text) {
  if (CodePart::parse(text)) return {};
  return error("\"{}\" names no part of a program: write module:FILE, function:NAME or function:BEGINNING*",
               text);
}

std::vector<ScopedCode> without_overlaps(std::vector<ScopedCode> parts) {
  std::ranges::stable_sort(parts, [](const ScopedCode& a, const ScopedCode& b) {
    return std::tuple(b.end - b.begin, a.kind) < std::tuple(a.end - a.begin, b.kind);
  });
  std::map<uint64_t, ScopedCode> painted;  // by begin address
  for (ScopedCode& part : parts) {
    if (part.begin >= part.end) continue;
    auto at = painted.lower_bound(part.begin);
    if (at != painted.begin() && std::prev(at)->second.end > part.begin) --at;
    // An atomic function that was inlined into another atomic one is a part of that one's call.
    if (at != painted.end() && at->second.kind == Kind::Atomic && part.kind == Kind::Atomic &&
        at->second.function != 0 && at->second.end >= part.end)
      continue;
    while (at != painted.end() && at->first < part.end) {
      ScopedCode old = at->second;
      at = painted.erase(at);
      part.in_scope = part.in_scope || old.in_scope || (old.kind == Kind::Scope && old.function != 0);
      const uint64_t end = old.end;
      if (old.begin < part.begin) {
        old.end = part.begin;
        painted[old.begin] = old;
      }
      if (end > part.end) {
        old.begin = part.end;
        old.end = end;
        painted[old.begin] = old;
      }
    }
    painted[part.begin] = part;
  }
  std::vector<ScopedCode> all;
  for (const auto& [begin, part] : painted) all.push_back(part);
  return all;
}

Result<ProgramScope> ProgramScope::make(const Program& program, const ProgramNames& names) {
  ProgramScope scope;
  scope.path_ = program.path;
  scope.own_allocator_ = names.defines(program.path, "malloc");
  for (const Kind kind : {Kind::Scope, Kind::Atomic})
    for (const std::string& text : kind == Kind::Scope ? program.scope : program.atomic) {
      TRY(check_scope(text));
      scope.parts_.push_back({kind, text, *CodePart::parse(text)});
    }
  return scope;
}

Kind ProgramScope::kind_of(const Zygote::Module& module) {
  Kind kind = Kind::Unnamed;
  for (Part& part : parts_)
    if (part.code.is_module && is_module(part.code.name, module.path)) {
      part.found = true;
      kind = std::max(kind, part.kind);
    }
  // An allocator function that libc calls may already have left its own frame at its last operation.
  return own_allocator_ && is_module("libc.so.6", module.path) ? Kind::Closed : kind;
}

Kind ProgramScope::kind_of(const std::string& symbol, const Zygote::Module& module) {
  Kind kind = Kind::Unnamed;
  for (Part& part : parts_)
    if (has_function(part.code, symbol)) {
      part.found = true;
      kind = std::max(kind, part.kind);
    }
  return own_allocator_ && module.path == path_ && is_of_allocator(symbol) ? Kind::Closed : kind;
}

std::vector<ScopedCode> ProgramScope::find_in(std::span<const Zygote::Module> modules,
                                              const ProgramNames& names, const Memory& memory) {
  std::vector<ScopedCode> all;
  if (parts_.empty() && !own_allocator_) return all;
  for (const Zygote::Module& module : modules) {
    files_.push_back(std::filesystem::path(module.path).filename().string());
    const Kind module_kind = kind_of(module);
    if (module_kind != Kind::Unnamed) all.push_back({module.begin, module.end, 0, module_kind, true, false});
    for (const ProgramNames::Code& code : names.code_of(module.begin)) {
      if (code.ranges.empty()) continue;
      Kind kind = kind_of(code.symbol, module);
      if (kind == Kind::Unnamed && !code.inlined) kind = module_kind;
      // In unnamed code only loops matter.
      if (kind == Kind::Unnamed && (code.inlined || !module.user)) continue;
      const bool loops = code.ranges.size() > 1 || may_loop(memory(code.ranges.front()));
      ++functions_;
      for (const preload::Range& range : code.ranges)
        all.push_back({range.begin, range.end, functions_, kind, loops, false});
    }
  }
  return without_overlaps(std::move(all));
}

Result<void> ProgramScope::check_found(const char* when) const {
  for (const Part& part : parts_) {
    if (part.found) continue;
    if (!part.code.is_module)
      return error(
          "\"{}\" is no function of the program or of a library that it has loaded {}; is it "
          "spelled as in a debugger, without arguments? Functions that exist only inlined are found if the "
          "program is built with -g",
          part.text, when);
    return error("\"{}\" is no file that the program has loaded {}; these are: {}", part.text, when,
                 fmt::join(std::set<std::string>(files_.begin(), files_.end()), ", "));
  }
  return {};
}

Result<void> fit_scope(std::vector<ScopedCode>& all) {
  // Unnamed code only improves what is known about loops.
  if (all.size() > preload::kMostScoped)
    std::erase_if(all, [](const ScopedCode& code) { return code.kind == Kind::Unnamed; });
  if (all.size() > preload::kMostScoped)
    return error("the scope consists of {} pieces of code; {} at the most are possible: name fewer functions",
                 all.size(), preload::kMostScoped);
  return {};
}

}  // namespace slalom
