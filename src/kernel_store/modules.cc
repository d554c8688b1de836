#include "kernel_store/modules.h"

#include <algorithm>

#include "base/file.h"
#include "kernel_store/control_file.h"
#include "kernel_store/decompress.h"
#include "kernel_store/elf_file.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMaxModule = uint64_t{256} << 20;

// The kernel treats dashes and underscores as equal.
std::string kernel_name(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Returns "kernel/fs/btrfs/btrfs.ko.xz" without the suffix of the compression; empty if it is no module.
std::optional<std::string> module_path(const std::filesystem::path& path) {
  std::string text = path.generic_string();
  for (const std::string_view suffix : {".xz", ".zst", ".gz"})
    if (text.ends_with(suffix)) {
      text.resize(text.size() - suffix.size());
      break;
    }
  if (!text.ends_with(".ko")) return std::nullopt;
  return text;
}

std::string name_of(const std::string& module_path) {
  return kernel_name(std::filesystem::path(module_path).stem().string());
}

void split_list(std::string text, char separator, std::vector<std::string>& into) {
  std::replace(text.begin(), text.end(), separator, ' ');
  for (std::string& word : split_words(text)) into.push_back(std::move(word));
}

void read_softdep(const std::string& text, std::vector<std::string>& first) {
  bool before = false;
  for (const std::string& word : split_words(text)) {
    if (word == "pre:" || word == "post:")
      before = word == "pre:";
    else if (before)
      first.push_back(word);
  }
}

// Splits parameters at the spaces outside of quotes.
std::vector<std::string> split_parameters(const std::string& text) {
  std::vector<std::string> words;
  bool quoted = false, inside = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == ' ' && !quoted) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    words.back() += c;
  }
  return words;
}

// Returns "6.1" of "6.1.0-9-cloud-amd64".
std::string series_of(const std::string& release) {
  const size_t dot = release.find('.');
  return dot == std::string::npos ? release : release.substr(0, release.find('.', dot + 1));
}

}  // namespace

WantedModule parse_wanted_module(const std::string& text) {
  const size_t space = std::min(text.find(' '), text.size());
  const size_t first = std::min(text.find_first_not_of(' ', space), text.size());
  return {kernel_name(text.substr(0, space)), text.substr(first)};
}

Result<void> check_parameters(const Module& module, const std::string& parameters) {
  for (const std::string& word : split_parameters(parameters)) {
    const std::string name = kernel_name(word.substr(0, word.find('=')));
    // The kernel itself knows these for every module.
    if (name == "dyndbg" || name == "async_probe" || name.starts_with("dyndbg.")) continue;
    if (std::ranges::find(module.parameters, name, kernel_name) != module.parameters.end()) continue;
    std::string known;
    for (const std::string& each : module.parameters) known += (known.empty() ? "it has " : ", ") + each;
    return error("the module {} has no parameter \"{}\"; {}", module.name, name,
                 known.empty() ? "it has none" : known);
  }
  return {};
}

std::string as_kernel_options(const WantedModule& module) {
  std::string options;
  for (const std::string& word : split_parameters(module.parameters))
    options += fmt::format("{}{}.{}", options.empty() ? "" : " ", module.name, word);
  return options;
}

Result<void> check_built_for(const Module& module, const std::string& release) {
  const std::string& other = module.built_for;
  if (other.empty() || release.empty() || other == release) return {};
  if (module.has_versions && series_of(other) == series_of(release)) return {};
  return error("the module {} was built for Linux {}, and this kernel is {}: build it for this kernel",
               module.name, other, release);
}

Result<Module> parse_module(std::span<const uint8_t> bytes) {
  TRY_ASSIGN(const ElfFile elf, parse_elf(bytes));
  const auto info = std::find_if(elf.sections.begin(), elf.sections.end(),
                                 [](const ElfSection& section) { return section.name == ".modinfo"; });
  if (info == elf.sections.end()) return error("it is no kernel module");
  Module module;
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + info->offset, info->size);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string key = entry.substr(0, equals);
    const std::string value = entry.substr(std::min(equals + 1, entry.size()));
    if (key == "name") module.name = kernel_name(value);
    if (key == "depends") split_list(value, ',', module.depends);
    if (key == "alias") module.aliases.push_back(value);
    if (key == "softdep") read_softdep(value, module.loads_first);
    if (key == "vermagic") module.built_for = value.substr(0, value.find(' '));
    if (key == "parmtype" || key == "parm") {
      const std::string parameter = value.substr(0, value.find(':'));
      if (std::ranges::find(module.parameters, parameter) == module.parameters.end())
        module.parameters.push_back(parameter);
    }
  }
  for (std::string& name : module.depends) name = kernel_name(name);
  module.has_versions = std::ranges::any_of(elf.sections, [](const ElfSection& section) {
    return section.name == "__versions" || section.name == "__version_ext_names";
  });
  module.bytes.assign(bytes.begin(), bytes.end());
  return module;
}

Result<ModuleTree> ModuleTree::open(const std::filesystem::path& directory) {
  ModuleTree tree(directory);
  std::error_code trouble;
  std::filesystem::recursive_directory_iterator each(directory, trouble);
  if (trouble) return error("cannot read the modules in {}: {}", directory.string(), trouble.message());
  for (; each != std::filesystem::recursive_directory_iterator(); each.increment(trouble)) {
    if (trouble) return error("cannot read the modules in {}: {}", directory.string(), trouble.message());
    const std::filesystem::path path = each->path().lexically_relative(directory);
    if (const auto module = module_path(path)) tree.files_.emplace(name_of(*module), path);
  }
  if (const Result<std::vector<uint8_t>> list = read_file(directory / "modules.builtin"); list.ok())
    for (const std::string& path : split_words(std::string(list->begin(), list->end())))
      tree.builtin_.insert(name_of(path));
  return tree;
}

bool ModuleTree::is_builtin(const std::string& name) const {
  return builtin_.contains(kernel_name(name));
}

Result<Module> read_module(const std::filesystem::path& file) {
  TRY_ASSIGN(std::vector<uint8_t> bytes, read_file(file));
  const auto trouble = [&](const Error& why) {
    return error("the module {}: {}", file.string(), why.message);
  };
  if (compression_of(bytes) != Compression::None) {
    Result<std::vector<uint8_t>> unpacked = unpack(bytes, kMaxModule);
    if (!unpacked.ok()) return trouble(unpacked.error());
    bytes = *std::move(unpacked);
  }
  Result<Module> module = parse_module(bytes);
  if (!module.ok()) return trouble(module.error());
  if (module->name.empty()) module->name = name_of(module_path(file).value_or(file.string()));
  return module;
}

Result<Module> ModuleTree::read(const std::string& name) const {
  const std::filesystem::path& file = files_.at(name);
  TRY_ASSIGN(Module module, read_module(directory_ / file));
  module.name = name;
  module.path = *module_path(file);
  return module;
}

void ModuleTree::read_aliases() {
  aliases_.emplace();
  // Entries have the form "crc32c_generic.alias=crc32c", separated by zeros. Built-in modules are loaded
  // already.
  if (const Result<std::vector<uint8_t>> info = read_file(directory_ / "modules.builtin.modinfo");
      info.ok()) {
    constexpr std::string_view mark = ".alias=";
    const std::string text(info->begin(), info->end());
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\0', begin), text.size());
      const std::string entry = text.substr(begin, end - begin);
      begin = end + 1;
      if (const size_t at = entry.find(mark); at != std::string::npos)
        aliases_->emplace(entry.substr(at + mark.size()), kernel_name(entry.substr(0, at)));
    }
  }
  // If several modules have an alias, prefer the generic one: the guest's CPU has no special instructions.
  for (const bool for_one_cpu : {false, true}) {
    for (const auto& [name, path] : files_) {
      if (path.generic_string().starts_with("kernel/arch/") != for_one_cpu) continue;
      const Result<Module> module = read(name);
      if (!module.ok()) continue;
      for (const std::string& each : module->aliases) aliases_->emplace(each, name);
    }
  }
}

std::optional<std::string> ModuleTree::by_alias(const std::string& alias) {
  if (!aliases_) read_aliases();
  const auto found = aliases_->find(alias);
  return found == aliases_->end() ? std::nullopt : std::optional(found->second);
}

Result<void> ModuleTree::visit(const std::string& name, const std::string& wanted_by,
                               std::set<std::string>& visited, std::vector<Module>& ordered) {
  if (builtin_.contains(name) || visited.contains(name)) return {};
  if (!files_.contains(name)) {
    if (wanted_by.empty())
      return error("this kernel has no module called {} in {}", name, directory_.string());
    return error("the module {} needs {}, which is not in {}", wanted_by, name, directory_.string());
  }
  visited.insert(name);
  TRY_ASSIGN(Module module, read(name));
  for (const std::string& needed : module.depends) TRY(visit(needed, name, visited, ordered));
  for (const std::string& first : module.loads_first) {
    const std::string plain = kernel_name(first);
    if (builtin_.contains(plain)) continue;
    const std::optional<std::string> found = files_.contains(plain) ? plain : by_alias(first);
    if (found) TRY(visit(*found, name, visited, ordered));
  }
  ordered.push_back(std::move(module));
  return {};
}

Result<std::vector<Module>> ModuleTree::with_dependencies(const std::vector<std::string>& names) {
  std::set<std::string> visited;
  std::vector<Module> ordered;
  for (const std::string& name : names) TRY(visit(kernel_name(name), "", visited, ordered));
  return ordered;
}

}  // namespace slalom::vm
