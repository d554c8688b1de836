#include "process/program_names.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "symbols/elf_symbols.h"

namespace slalom {
namespace {

std::string demangle(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

// Where the bracket that opens at `open` closes; npos: nowhere.
size_t closing(const std::string& text, size_t open, char opens, char closes) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += text[at] == opens;
    depth -= text[at] == closes;
    if (depth == 0) return at;
  }
  return std::string::npos;
}

// A function without its arguments and result: "Queue::push", "main::{lambda()#1}".
std::string short_name(const std::string& symbol) {
  std::string name = demangle(symbol);
  // What a std::thread runs is the first type in this tuple.
  if (const size_t tuple = name.find("std::thread::_Invoker<std::tuple<"); tuple != std::string::npos) {
    const size_t open = name.find('<', name.find("std::tuple", tuple));
    const size_t close = closing(name, open, '<', '>');
    if (close != std::string::npos) name = name.substr(open + 1, close - open - 1);
    int depth = 0;
    for (size_t at = 0; at < name.size(); ++at) {
      depth += name[at] == '<' || name[at] == '(' || name[at] == '{';
      depth -= name[at] == '>' || name[at] == ')' || name[at] == '}';
      if (depth == 0 && name[at] == ',') name.resize(at);
    }
    while (!name.empty() && name.back() == ' ') name.pop_back();
    return name;
  }
  if (name == symbol) return name;
  // "main::{lambda()#1}::operator()() const" is the lambda.
  if (const size_t call = name.find("}::operator()"); call != std::string::npos)
    return name.substr(0, call + 1);
  const size_t from = name.rfind('}') == std::string::npos ? 0 : name.rfind('}');
  size_t open = std::string::npos;
  int angles = 0;
  for (size_t at = from; at < name.size() && open == std::string::npos; ++at) {
    angles += name[at] == '<';
    angles -= name[at] == '>';
    if (angles == 0 && name[at] == '(' && at > 0 && name.compare(at, 11, "(anonymous ") != 0) open = at;
  }
  return open == std::string::npos ? name : name.substr(0, open);
}

bool is_library_code(const std::string& symbol) {
  for (const char* prefix : {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_ZGVZNSt"})
    if (symbol.rfind(prefix, 0) == 0) return true;
  return symbol.find("__gthread_") != std::string::npos;
}

}  // namespace

void ProgramNames::learn_modules(const std::vector<Zygote::Module>& modules) {
  std::lock_guard lock(mutex_);
  if (!modules_.empty()) return;
  for (const Zygote::Module& module : modules) modules_.push_back({module, std::nullopt});
}

void ProgramNames::learn_agent(AgentId id, uint64_t entry) {
  std::lock_guard lock(mutex_);
  entries_.try_emplace(id, entry);
}

const SymbolTable& ProgramNames::symbols_of(Module& module) const {
  if (module.symbols) return *module.symbols;
  module.symbols.emplace();
  const Result<std::vector<uint8_t>> file = read_file(module.where.path);
  Elf64_Ehdr header;
  if (!file.ok() || file->size() < sizeof header) return *module.symbols;
  std::memcpy(&header, file->data(), sizeof header);
  const uint64_t bias = header.e_type == ET_DYN ? module.where.begin : 0;
  Result<SymbolTable> symbols = read_elf_symbols(*file, bias);
  if (symbols.ok()) module.symbols = std::move(*symbols);
  return *module.symbols;
}

const ProgramNames::Module* ProgramNames::module_of(uint64_t address) const {
  for (const Module& module : modules_)
    if (address >= module.where.begin && address < module.where.end) return &module;
  return nullptr;
}

const Symbol* ProgramNames::find(uint64_t address) const {
  for (Module& module : modules_) {
    // Zeroed variables lie behind what comes from the file.
    if (address < module.where.begin || address >= module.where.end + (uint64_t{1} << 28)) continue;
    if (const Symbol* symbol = symbols_of(module).at(address)) return symbol;
  }
  return nullptr;
}

std::vector<preload::Range> ProgramNames::wrappers() const {
  std::lock_guard lock(mutex_);
  std::vector<preload::Range> ranges;
  for (Module& module : modules_) {
    if (!module.where.user) continue;
    for (const Symbol& symbol : symbols_of(module).symbols())
      if (symbol.is_code() && symbol.size > 0 && is_library_code(symbol.name))
        ranges.push_back({symbol.address, symbol.address + symbol.size});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const preload::Range& a, const preload::Range& b) { return a.begin < b.begin; });
  return ranges;
}

std::string ProgramNames::role(AgentId id) const {
  std::lock_guard lock(mutex_);
  if (id == AgentId::initial(0)) return "main";
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return "thread";
  const Symbol* symbol = find(entry->second);
  return symbol == nullptr ? "thread" : short_name(symbol->name);
}

std::string ProgramNames::agent(AgentId id) const {
  if (id == AgentId::initial(0)) return "main";
  const std::string path = id.path();
  if (id.parent() == AgentId::initial(0))
    return fmt::format("{}#{}", role(id), path.substr(path.rfind('.') + 1));
  return fmt::format("{}@{}", role(id), path);
}

std::string ProgramNames::object(ObjectId id) const {
  if (id.raw == 0) return {};
  if ((id.raw >> 56) != 0) return agent(AgentId{id.raw});
  std::lock_guard lock(mutex_);
  if (const Symbol* symbol = find(id.raw)) {
    const std::string name = demangle(symbol->name);
    return id.raw == symbol->address ? name : fmt::format("{}+{}", name, id.raw - symbol->address);
  }
  constexpr uint64_t kMainStack = 0x7ff000000000;
  return fmt::format("{}@{:x}", id.raw >= kMainStack ? "local" : "heap", id.raw);
}

std::string ProgramNames::place(Place pc) const {
  std::lock_guard lock(mutex_);
  if (const Symbol* symbol = find(pc.raw))
    return fmt::format("{}+{:#x}", short_name(symbol->name), pc.raw - symbol->address);
  if (const Module* module = module_of(pc.raw))
    return fmt::format("{}+{:#x}", std::filesystem::path(module->where.path).filename().string(),
                       pc.raw - module->where.begin);
  return "?";
}

std::string ProgramNames::source(Place) const {
  return {};
}

}  // namespace slalom
