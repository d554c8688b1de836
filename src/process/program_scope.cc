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

constexpr std::string_view kModule = "module:", kFunction = "function:";

// The functions through which a program and its libraries use an allocator.
constexpr std::string_view kAllocator[] = {"malloc", "calloc",         "realloc",  "free",
                                           "cfree",  "posix_memalign", "memalign", "aligned_alloc",
                                           "valloc", "pvalloc"};
constexpr std::string_view kOperators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

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

bool is_function(std::string_view pattern, const std::string& symbol) {
  // The compiler splits functions: "push.cold", "push.part.0".
  if (matches(pattern, symbol) || matches(pattern, symbol.substr(0, symbol.find('.')))) return true;
  const std::string name = short_name(symbol);
  return matches(pattern, name) || matches(pattern, without_template_arguments(name));
}

bool is_module(std::string_view wanted, const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  if (wanted == path || wanted == file) return true;
  return file.starts_with(wanted) && (file[wanted.size()] == '.' || wanted.ends_with(".so"));
}

// What the user wrote, and whether it was found.
struct Part {
  Kind kind;
  std::string text;
  std::string_view name;
  bool is_module = false;
  bool found = false;
};

std::vector<Part> parts_of(const Program& program) {
  std::vector<Part> parts;
  for (const Kind kind : {Kind::Scope, Kind::Atomic})
    for (const std::string& text : kind == Kind::Scope ? program.scope : program.atomic) {
      const std::string_view view = text;
      const bool module = view.starts_with(kModule);
      parts.push_back({kind, text, view.substr((module ? kModule : kFunction).size()), module});
    }
  return parts;
}

bool is_of_allocator(const std::string& symbol) {
  return std::ranges::count(kAllocator, symbol) > 0 ||
         std::ranges::any_of(kOperators, [&](std::string_view name) { return symbol.starts_with(name); });
}

const Zygote::Module* module_of(const std::vector<Zygote::Module>& modules, uint64_t address) {
  for (const Zygote::Module& module : modules)
    if (address >= module.begin && address < module.end) return &module;
  return nullptr;
}

Error unknown(const Part& part, const std::vector<Zygote::Module>& modules) {
  if (!part.is_module)
    return error(
        "\"{}\" is no function of the program or of a library that it has loaded when main() begins; is it "
        "spelled as in a debugger, without arguments? Functions that exist only inlined are found if the "
        "program is built with -g",
        part.text);
  std::set<std::string> files;
  for (const Zygote::Module& module : modules)
    files.insert(std::filesystem::path(module.path).filename().string());
  return error("\"{}\" is no file that the program has loaded when main() begins; these are: {}", part.text,
               fmt::join(files, ", "));
}

}  // namespace

Result<void> check_scope(std::string_view text) {
  for (const std::string_view kind : {kModule, kFunction}) {
    if (!text.starts_with(kind)) continue;
    const std::string_view name = text.substr(kind.size());
    const size_t star = name.find('*');
    if (!name.empty() && name != "*" &&
        (star == std::string_view::npos || (kind == kFunction && star == name.size() - 1)))
      return {};
  }
  return error("\"{}\" names no part of a program: write module:FILE, function:NAME or function:BEGINNING*",
               text);
}

std::vector<ScopedCode> without_overlaps(std::vector<ScopedCode> parts) {
  std::ranges::stable_sort(parts, [](const ScopedCode& a, const ScopedCode& b) {
    return std::tuple(b.end - b.begin, a.kind) < std::tuple(a.end - a.begin, b.kind);
  });
  std::map<uint64_t, ScopedCode> painted;  // by where they begin
  for (ScopedCode& part : parts) {
    if (part.begin >= part.end) continue;
    auto at = painted.lower_bound(part.begin);
    if (at != painted.begin() && std::prev(at)->second.end > part.begin) --at;
    // A call of one that was inlined into another atomic one is a part of that one's call.
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

Result<std::vector<ScopedCode>> find_scope(const Program& program, const ProgramNames& names,
                                           const Zygote& zygote) {
  const std::vector<Zygote::Module>& modules = zygote.modules();
  const bool own_allocator = names.defines(program.path, "malloc");
  std::vector<Part> parts = parts_of(program);
  if (parts.empty() && !own_allocator) return std::vector<ScopedCode>();
  for (const Part& part : parts) TRY(check_scope(part.text));

  std::vector<ScopedCode> all;
  uint32_t functions = 0;
  const auto add_module = [&](const Zygote::Module& module) {
    Kind kind = Kind::Unnamed;
    for (Part& part : parts)
      if (part.is_module && is_module(part.name, module.path)) {
        part.found = true;
        kind = std::max(kind, part.kind);
      }
    // An allocator that libc calls may have left its own frame already, when its last operation comes.
    if (own_allocator && is_module("libc.so.6", module.path)) kind = Kind::Closed;
    if (kind != Kind::Unnamed) all.push_back({module.begin, module.end, 0, kind, true, false});
    return kind;
  };
  std::map<const Zygote::Module*, Kind> module_kinds;
  for (const Zygote::Module& module : modules) module_kinds[&module] = add_module(module);

  for (const ProgramNames::Code& code : names.all_code()) {
    if (code.ranges.empty()) continue;
    const Zygote::Module* module = module_of(modules, code.ranges.front().begin);
    if (module == nullptr) continue;
    Kind kind = Kind::Unnamed;
    for (Part& part : parts)
      if (!part.is_module && is_function(part.name, code.symbol)) {
        part.found = true;
        kind = std::max(kind, part.kind);
      }
    if (own_allocator && module->path == program.path && is_of_allocator(code.symbol)) kind = Kind::Closed;
    if (kind == Kind::Unnamed && !code.inlined) kind = module_kinds[module];
    // Of what is not named, only loops matter.
    if (kind == Kind::Unnamed && (code.inlined || !module->user)) continue;
    const bool loops = code.ranges.size() > 1 || may_loop(zygote.memory(code.ranges.front()));
    ++functions;
    for (const preload::Range& range : code.ranges)
      all.push_back({range.begin, range.end, functions, kind, loops, false});
  }
  for (const Part& part : parts)
    if (!part.found) return unknown(part, modules);
  all = without_overlaps(std::move(all));
  // Without these, less is known about loops.
  if (all.size() > preload::kMostScoped)
    std::erase_if(all, [](const ScopedCode& code) { return code.kind == Kind::Unnamed; });
  if (all.size() > preload::kMostScoped)
    return error("the scope consists of {} pieces of code; {} at the most are possible: name fewer functions",
                 all.size(), preload::kMostScoped);
  return all;
}

}  // namespace slalom
