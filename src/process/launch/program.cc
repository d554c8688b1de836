#include "process/launch/program.h"

#include <elf.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/file.h"

namespace slalom {
namespace {

namespace fs = std::filesystem;

Result<fs::path> locate(const std::string& name) {
  std::error_code ignored;
  const auto usable = [&](const fs::path& path) {
    return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    if (!fs::exists(name, ignored)) return error("there is no file {}", name);
    if (fs::is_directory(name, ignored)) return error("{} is a folder; name the program in it", name);
    if (!usable(name)) return error("{} may not be executed; try: chmod +x {}", name, name);
    return fs::absolute(name);
  }
  const char* variable = std::getenv("PATH");
  const std::string folders = variable == nullptr ? "/usr/bin:/bin" : variable;
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const fs::path path = fs::path(folders.substr(at, end - at)) / name;
    if (usable(path)) return fs::absolute(path);
    at = end + 1;
  }
  if (usable(name)) return error("there is no {0} in PATH; to run the one in this folder: ./{0}", name);
  return error("there is no program {}", name);
}

Result<void> check_kind(const std::string& path, std::span<const uint8_t> file) {
  if (file.size() >= 2 && file[0] == '#' && file[1] == '!')
    return error(
        "{} is a script: slalom controls the program that a process really is; name that one, and the script "
        "as its argument",
        path);
  if (file.size() < sizeof(Elf64_Ehdr) || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0)
    return error("{} is no program that Linux can run (not an ELF file)", path);
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
    return error("{} is not a 64-bit x86 program: slalom controls only those; build it without -m32", path);
  bool interpreter = false;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t at = header.e_phoff + uint64_t{i} * header.e_phentsize;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || at > file.size() || file.size() - at < sizeof(Elf64_Phdr))
      return error("{} is damaged: its program headers do not lie within it", path);
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + at, sizeof segment);
    interpreter = interpreter || segment.p_type == PT_INTERP;
  }
  if (!interpreter)
    return error(
        "{} is linked statically (or is a library): slalom works through the dynamic linker; link the "
        "program "
        "without -static",
        path);
  return {};
}

Result<std::string> hash_file(const std::string& path) {
  TRY_ASSIGN(const std::vector<uint8_t> file, read_file(path));
  return fmt::format("{:016x}", XXH3_64bits(file.data(), file.size()));
}

}  // namespace

std::string Program::name() const {
  return fs::path(path).filename().string();
}

Result<Program> find_program(const std::vector<std::string>& command) {
  if (command.empty()) return error("no program is named; write: slalom run -- ./prog arguments");
  TRY_ASSIGN(const fs::path path, locate(command.front()));
  TRY_ASSIGN(const std::vector<uint8_t> file, read_file(path));
  TRY(check_kind(command.front(), file));
  Program program;
  program.path = path.lexically_normal().string();
  program.arguments = command;
  program.hash = fmt::format("{:016x}", XXH3_64bits(file.data(), file.size()));
  return program;
}

Result<void> check_unchanged(const Program& program) {
  Result<std::string> hash = hash_file(program.path);
  if (!hash.ok())
    return error(
        "the program that this was found in is not here: {}; copy it to that place, or name it with "
        "--program",
        program.path);
  if (*hash != program.hash)
    return error(
        "{} is not the program that this was found in: its contents have the hash {}, those had {}; build it "
        "from the same sources, or search again with slalom run",
        program.path, *hash, program.hash);
  return {};
}

bool is_instrumented(const Program& program) {
  const Result<std::vector<uint8_t>> file = read_file(program.path);
  return file.ok() && is_instrumented(*file);
}

bool is_instrumented(std::span<const uint8_t> elf) {
  constexpr std::string_view kCalled = "__tsan_init";
  return std::search(elf.begin(), elf.end(), kCalled.begin(), kCalled.end()) != elf.end();
}

std::string to_text(const Program& program) {
  nlohmann::ordered_json json;
  json["path"] = program.path;
  json["arguments"] = program.arguments;
  json["hash"] = program.hash;
  json["timeouts"] = program.timeouts == Program::Timeouts::Any ? "any" : "idle";
  json["statuses"] = program.statuses == Program::Statuses::ZeroOnly ? "zero" : "any";
  if (!program.scratch.empty()) json["scratch"] = program.scratch;
  if (program.spurious != 0) json["spurious"] = program.spurious;
  if (!program.scope.empty()) json["scope"] = program.scope;
  if (!program.atomic.empty()) json["atomic"] = program.atomic;
  if (program.expected_output)
    json["expected_output"] = {{"file", program.expected_output->file},
                               {"text", program.expected_output->text}};
  if (!program.check.empty()) json["check"] = program.check;
  // Arguments may be any bytes. Invalid UTF-8 is replaced.
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<Program> parse_program(const std::string& text) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  const auto malformed = [] { return error("malformed: the description of the program cannot be read"); };
  if (!json.is_object()) return malformed();
  const auto string = [&](const char* key) -> std::string {
    const auto at = json.find(key);
    return at != json.end() && at->is_string() ? at->get<std::string>() : "";
  };
  Program program;
  program.path = string("path");
  program.hash = string("hash");
  program.scratch = string("scratch");
  program.check = string("check");
  if (const auto output = json.find("expected_output"); output != json.end()) {
    if (!output->is_object() || !output->contains("file") || !(*output)["file"].is_string() ||
        !output->contains("text") || !(*output)["text"].is_string())
      return malformed();
    program.expected_output = {(*output)["file"].get<std::string>(), (*output)["text"].get<std::string>()};
  }
  const auto strings = [&](const char* key, std::vector<std::string>& to) {
    const auto at = json.find(key);
    if (at == json.end()) return true;
    if (!at->is_array()) return false;
    for (const auto& one : *at) {
      if (!one.is_string()) return false;
      to.push_back(one.get<std::string>());
    }
    return true;
  };
  if (program.path.empty() || program.path.front() != '/' || !strings("arguments", program.arguments) ||
      program.arguments.empty() || !strings("scope", program.scope) || !strings("atomic", program.atomic))
    return malformed();
  if (string("timeouts") == "idle") program.timeouts = Program::Timeouts::Idle;
  if (string("statuses") == "any") program.statuses = Program::Statuses::AnyGood;
  const auto spurious = json.find("spurious");
  if (spurious != json.end()) {
    if (!spurious->is_number_unsigned() || spurious->get<uint64_t>() > UINT32_MAX) return malformed();
    program.spurious = spurious->get<uint32_t>();
  }
  return program;
}

}  // namespace slalom
