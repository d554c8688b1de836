#include "targets/toy.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "toy/toy_file.h"
#include "toy/toy_machine.h"

namespace slalom {
namespace {

Target make_toy_target(TargetId id, ToyProgram program) {
  auto shared = std::make_shared<const ToyProgram>(std::move(program));
  const auto make = [shared](const MachineUse& use) -> Result<std::unique_ptr<Machine>> {
    const auto mode = use.checkpoints ? ToyMachine::SnapshotMode::On : ToyMachine::SnapshotMode::Off;
    return std::unique_ptr<Machine>(std::make_unique<ToyMachine>(shared, mode));
  };
  const bool yields = std::any_of(shared->code.begin(), shared->code.end(),
                                  [](const ToyInstruction& i) { return i.op == ToyOp::Yield; });
  Target target;
  target.id = std::move(id);
  target.make_machine = make;
  target.traits.yields = yields;
  target.traits.needs_consent = false;
  target.defaults.proves_all = true;  // executions take microseconds
  target.traits.keeps_states = true;
  const bool spawns =
      std::ranges::any_of(shared->code, [](const ToyInstruction& i) { return i.op == ToyOp::Spawn; });
  target.reports.remarks = [agents = shared->agents.size(), spawns]() -> std::vector<std::string> {
    if (agents == 0) return {"the file has no [[thread]]: there is nothing to execute"};
    if (agents == 1 && !spawns) return {"the program has one thread: there is nothing to interleave"};
    return {};
  };
  if (shared->expects) target.expected = {shared->expected_kinds, shared->expected_titles};
  return target;
}

Result<ToySettings> parse_settings(const std::vector<std::string>& settings) {
  ToySettings parsed;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    int64_t value = 0;
    const char* end = setting.data() + setting.size();
    const char* begin = setting.data() + (equals == std::string::npos ? setting.size() : equals + 1);
    if (equals == 0 || begin == end || std::from_chars(begin, end, value).ptr != end)
      return error("--set takes NAME=NUMBER, as in --set n=3, not \"{}\"", setting);
    parsed[setting.substr(0, equals)] = value;
  }
  return parsed;
}

}  // namespace

Result<Target> open_toy(const std::string& path, const std::vector<std::string>& settings) {
  TRY_ASSIGN(const ToySettings values, parse_settings(settings));
  TRY_ASSIGN(ToyProgram program, load_toy_file(path, values));
  TRY_ASSIGN(const std::vector<uint8_t> content, read_file(path));
  std::vector<std::pair<std::string, int64_t>> params(values.begin(), values.end());
  TargetId id =
      make_target("toy", program.name, std::string(content.begin(), content.end()), std::move(params));
  return make_toy_target(std::move(id), std::move(program));
}

Result<Target> open_toy(const TargetId& id) {
  TRY_ASSIGN(ToyProgram program,
             parse_toy(id.content, id.name, ToySettings(id.params.begin(), id.params.end())));
  return make_toy_target(id, std::move(program));
}

}  // namespace slalom
