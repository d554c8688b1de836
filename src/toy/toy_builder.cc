#include "toy/toy_builder.h"

#include <algorithm>

#include "toy/toy_compiler.h"
#include "toy/toy_parser.h"

namespace slalom {
namespace {

constexpr int64_t kMostCells = 1'000'000;
constexpr int64_t kMostCopies = 10'000;
constexpr int64_t kMostCount = 1'000'000;

std::vector<std::string> trimmed_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const size_t first = line.find_first_not_of(" \t\r");
    const size_t last = line.find_last_not_of(" \t\r");
    lines.push_back(first == std::string::npos ? "" : line.substr(first, last - first + 1));
    begin = end + 1;
  }
  return lines;
}

Error diagnose(const ToyBlock& block, const ToyCode& code, const ToyDiagnostic& problem) {
  if (code.file.empty()) return error("{}:{}: {}", block.name, problem.line, problem.message);
  return error("{}:{}: in `{}`: {}", code.file, code.first_line + problem.line - 1, block.name,
               problem.message);
}

}  // namespace

ToyBuilder::ToyBuilder(std::string name, std::string about) {
  program_.name = std::move(name);
  program_.about = std::move(about);
}

void ToyBuilder::refuse(std::string message) {
  if (problem_.empty()) problem_ = std::move(message);
}

void ToyBuilder::declare(const std::string& name) {
  if (is_toy_keyword(name))
    return refuse(fmt::format("`{}` is a word of the language: choose another name", name));
  if (!is_toy_identifier(name))
    return refuse(fmt::format("`{}` is not a name: use letters, digits and _, and no digit first", name));
  if (std::find(names_.begin(), names_.end(), name) != names_.end())
    return refuse(fmt::format("`{}` is declared twice: choose another name", name));
  names_.push_back(name);
}

ToyBuilder& ToyBuilder::param(std::string name, int64_t value) {
  declare(name);
  program_.params.emplace_back(std::move(name), value);
  return *this;
}

ToyBuilder& ToyBuilder::shared(std::string name, ToySharedOptions options) {
  declare(name);
  const int64_t size = options.size.value_or(1);
  if (size < 1 || program_.cells() + size > kMostCells) {
    refuse(
        fmt::format("the size of `{}` is {}: it must be at least 1, and all shared variables together at "
                    "most {} cells",
                    name, size, kMostCells));
    return *this;
  }
  program_.shared.push_back({.name = std::move(name),
                             .first = program_.cells(),
                             .size = static_cast<uint32_t>(size),
                             .array = options.size.has_value(),
                             .atomic = options.atomic,
                             .persistent = options.persistent,
                             .init = options.init});
  return *this;
}

ToyBuilder& ToyBuilder::sync(std::string name, ToySyncKind kind, ToySyncOptions options) {
  declare(name);
  const int64_t size = options.size.value_or(1);
  const int64_t least = kind == ToySyncKind::Barrier ? 1 : 0;
  if (size < 1 || program_.sync_objects() + size > kMostCells) {
    refuse(fmt::format("the size of `{}` is {}: it must be between 1 and {}", name, size, kMostCells));
  } else if (options.count < least || options.count > kMostCount) {
    refuse(fmt::format("the {} of `{}` must be between {} and {}, not {}", least == 1 ? "parties" : "count",
                       name, least, kMostCount, options.count));
  } else {
    program_.sync.push_back({.name = std::move(name),
                             .kind = kind,
                             .first = program_.sync_objects(),
                             .size = static_cast<uint32_t>(size),
                             .array = options.size.has_value(),
                             .count = static_cast<uint32_t>(options.count)});
  }
  return *this;
}

void ToyBuilder::add_block(ToyBlock block, Source source) {
  block.lines = trimmed_lines(source.code.text);
  program_.blocks.push_back(std::move(block));
  sources_.push_back(std::move(source));
}

ToyBuilder& ToyBuilder::thread(std::string name, ToyCode code, ToyThreadOptions options) {
  declare(name);
  if (options.copies < 0 || options.copies > kMostCopies)
    refuse(fmt::format("the copies of thread `{}` must be between 0 and {}, not {}", name, kMostCopies,
                       options.copies));
  if (!options.start && options.copies != 1)
    refuse(fmt::format(
        "thread `{}` does not start by itself, so it has no copies: spawn it as often as needed", name));
  const uint32_t copies = options.start ? static_cast<uint32_t>(options.copies) : 0;
  add_block({.kind = ToyBlock::Kind::Thread, .name = std::move(name), .copies = copies},
            {std::move(code), "", ""});
  return *this;
}

ToyBuilder& ToyBuilder::interrupt(std::string name, std::string on, ToyCode code, int64_t times) {
  declare(name);
  if (times < 0 || times > kMostCount)
    refuse(
        fmt::format("the times of interrupt `{}` must be between 0 and {}, not {}", name, kMostCount, times));
  add_block(
      {.kind = ToyBlock::Kind::Interrupt, .name = std::move(name), .pending = static_cast<uint32_t>(times)},
      {std::move(code), std::move(on), ""});
  return *this;
}

ToyBuilder& ToyBuilder::timer(std::string name, ToyCode code) {
  declare(name);
  add_block({.kind = ToyBlock::Kind::Timer, .name = std::move(name)}, {std::move(code), "", ""});
  return *this;
}

ToyBuilder& ToyBuilder::final_check(ToyCode expression, std::string message) {
  if (program_.final_block) refuse("there are two final checks: join them with &&");
  program_.final_block = static_cast<uint32_t>(program_.blocks.size());
  add_block({.kind = ToyBlock::Kind::Final, .name = "final"},
            {std::move(expression), "", std::move(message)});
  return *this;
}

ToyBuilder& ToyBuilder::expect(std::vector<std::string> kinds, std::vector<std::string> titles) {
  program_.expects = true;
  program_.expected_kinds = std::move(kinds);
  program_.expected_titles = std::move(titles);
  return *this;
}

Result<ToyProgram> ToyBuilder::build() const {
  if (!problem_.empty()) return Error{problem_};
  ToyProgram program = program_;
  TRY(add_agents(program));
  for (uint32_t block = 0; block < program.blocks.size(); ++block) TRY(compile(program, block));
  return program;
}

// Adds threads first, in order of declaration, then timers, with consecutive ids. An interrupt's id belongs
// to the thread that it interrupts.
Result<void> ToyBuilder::add_agents(ToyProgram& program) const {
  uint32_t ordinal = 0;
  for (const auto kind : {ToyBlock::Kind::Thread, ToyBlock::Kind::Timer}) {
    for (uint32_t i = 0; i < program.blocks.size(); ++i) {
      const ToyBlock& block = program.blocks[i];
      if (block.kind != kind) continue;
      for (uint32_t copy = 0; copy < block.copies; ++copy) {
        const std::string name = block.copies == 1 ? block.name : fmt::format("{}#{}", block.name, copy);
        program.agents.push_back({AgentId::initial(ordinal++), i, copy, std::nullopt, name});
      }
    }
  }
  const auto threads = static_cast<uint32_t>(program.agents.size());
  std::vector<uint32_t> lines(threads, 0);
  for (uint32_t i = 0; i < program.blocks.size(); ++i) {
    if (program.blocks[i].kind != ToyBlock::Kind::Interrupt) continue;
    const std::string& on = sources_[i].on;
    uint32_t target = 0;
    const auto is_target = [&](const ToyInitialAgent& agent) {
      const ToyBlock& block = program.blocks[agent.block];
      return block.kind == ToyBlock::Kind::Thread &&
             (agent.name == on || (block.name == on && agent.copy == 0));
    };
    while (target < threads && !is_target(program.agents[target])) ++target;
    if (target == threads)
      return error("interrupt `{}` is on `{}`, which is not a thread that runs from the start",
                   program.blocks[i].name, on);
    program.agents.push_back(
        {program.agents[target].id.interrupt(lines[target]++), i, 0, target, program.blocks[i].name});
  }
  return {};
}

Result<void> ToyBuilder::compile(ToyProgram& program, uint32_t index) const {
  const ToyBlock& block = program.blocks[index];
  const Source& source = sources_[index];
  std::vector<ToyStmt> statements;
  std::optional<ToyDiagnostic> problem;
  if (block.kind == ToyBlock::Kind::Final) {
    ToyExprSyntax syntax = parse_toy_expr(source.code.text);
    problem = std::move(syntax.problem);
    ToyStmt check;
    check.kind = ToyStmt::Kind::Assert;
    check.line = 1;
    check.args.push_back(std::move(syntax.expr));
    check.text = source.message.empty() ? source.code.text : source.message;
    statements.push_back(std::move(check));
  } else {
    ToySyntax syntax = parse_toy_code(source.code.text);
    problem = std::move(syntax.problem);
    statements = std::move(syntax.statements);
  }
  if (!problem) problem = compile_toy_block(program, index, statements);
  if (problem) return diagnose(block, source.code, *problem);
  return {};
}

}  // namespace slalom
