#include "cli/core/consent.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "finding/signing_key.h"
#include "process/launch/program.h"
#include "targets/kernel_test.h"

namespace slalom {
namespace {

// The commands that would run outside slalom: what each is, and its value.
using WouldRun = std::vector<std::pair<std::string, std::string>>;

// Quotes text so that a shell reads it as one word.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,=@%^";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Returns the current command line with --trust after its verb.
std::string command_with_trust() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command;
  int words = 0;
  for (std::string word; std::getline(file, word, '\0'); ++words) {
    command += (words == 0 ? "" : " ") + shell_word(word);
    if (words == 1) command += " --trust";
  }
  return command;
}

Result<void> add_program(const TargetId& id, const Consent& consent, WouldRun& all) {
  TRY_ASSIGN(const Program program, parse_program(id.content));
  all.emplace_back("program", consent.program_at.empty() ? program.path : consent.program_at);
  std::vector<std::string> arguments;
  for (size_t i = 1; i < program.arguments.size(); ++i) arguments.push_back(shell_word(program.arguments[i]));
  all.emplace_back("called as", shell_word(program.arguments.front()));
  all.emplace_back("arguments", arguments.empty() ? "none" : fmt::format("{}", fmt::join(arguments, " ")));
  std::error_code ignored;
  all.emplace_back("folder", program.scratch.empty()
                                 ? std::filesystem::current_path(ignored).string()
                                 : fmt::format("a copy of {}, with all that is in it", program.scratch));
  all.emplace_back("environment", "that of this command");
  if (!program.check.empty())
    all.emplace_back("check", fmt::format("/bin/sh -c {}, after each execution", shell_word(program.check)));
  return {};
}

Result<WouldRun> would_run(const Finding& finding, const Consent& consent) {
  WouldRun all;
  const TargetId& id = finding.target;
  if (id.kind == "program") TRY(add_program(id, consent, all));
  if (id.kind == "kernel") {
    TRY_ASSIGN(const std::vector<std::string> sources, sources_to_compile(id));
    for (const std::string& source : sources) all.emplace_back("C compiler", "on " + source);
    if (consent.debugs) all.emplace_back("debugger", "gdb, on the files that the kernel test names");
  }
  return all;
}

}  // namespace

Result<void> check_consent(const Capsule& capsule, const Consent& consent) {
  if (consent.trust) return {};
  TRY_ASSIGN(const WouldRun all, would_run(capsule.finding, consent));
  if (all.empty()) return {};
  const Result<SigningKey> key = SigningKey::load();
  if (key.ok() && capsule.signed_by(*key)) return {};
  // An unusable key may be the reason, so it is reported. A missing key is normal.
  const Result<std::filesystem::path> place = SigningKey::path();
  std::error_code ignored;
  const bool unusable = !key.ok() && (!place.ok() || std::filesystem::exists(*place, ignored));
  const std::string why = unusable ? fmt::format(" ({})", key.error().message) : "";
  std::string lines;
  for (const auto& [what, value] : all) lines += fmt::format("  {:<12} {}\n", what, printable(value));
  return error(
      "this capsule is not run without your consent, since nothing shows that you made it on this machine{}. "
      "It would "
      "run:\n{}  If you trust it: {}",
      why, lines, printable(command_with_trust()));
}

void add_trust_option(CLI::App& verb, bool& trust) {
  verb.add_flag("--trust", trust,
                "run what the capsule names, although it was not made by you on this machine");
}

}  // namespace slalom
