// Makes files that slalom would never write: what somebody could send to a user. For tests of the command.
//
//   forge capsule OUT KIND NAME CONTENT TEXT   a capsule of that target, with TEXT wherever it has words
//   forge trace OUT TEXT                       a trace whose events have TEXT
//
// CONTENT and TEXT are files.
#include <cstdio>
#include <string>
#include <vector>

#include "base/file.h"
#include "finding/capsule.h"
#include "finding/signing_key.h"
#include "trace/files/trace_file.h"

namespace slalom {
namespace {

std::string contents_of(const char* file) {
  const std::vector<uint8_t> bytes = read_file(file).value();
  return {bytes.begin(), bytes.end()};
}

Finding forged_finding(const std::string& kind, const std::string& name, const std::string& content,
                       const std::string& text) {
  const AgentId main = AgentId::initial(0);
  Finding finding;
  finding.verdict = {
      BugKind::Assertion, Severity::Failure, text, text + "\n" + text, {{Step{1}, main, Place{1}, text}}};
  finding.target = make_target(kind, name, content);
  finding.max_steps = 1000;
  finding.schedule.switches = {{{}, 0, main}};
  finding.original = finding.schedule;
  finding.constraints = {{{main, 1, Place{1}, text}, {main, 2, Place{2}, text}}};
  finding.strategy = text;
  finding.surroundings = text;
  return finding;
}

TraceLog forged_trace(const std::string& text) {
  const AgentId main = AgentId::initial(0);
  TraceLog log;
  uint64_t step = 0;
  for (const OpKind op : {OpKind::Lock, OpKind::Alloc, OpKind::Call, OpKind::Return, OpKind::SyscallEnter,
                          OpKind::Note, OpKind::Fail, OpKind::Console, OpKind::ThreadSwitch, OpKind::Note})
    log.on_event(
        {.step = Step{++step}, .agent = main, .op = op, .pc = Place{1}, .object = ObjectId{7}, .text = text});
  log.on_end(Faulted{Faulted::Kind::Assertion, main, Place{1}, text});
  return log;
}

int forge(const std::vector<const char*>& words) {
  const std::string what = words.size() > 1 ? words[1] : "";
  Result<void> done = error("usage: forge capsule OUT KIND NAME CONTENT TEXT | forge trace OUT TEXT");
  if (what == "capsule" && words.size() == 7)
    done = save_capsule(
        words[2], forged_finding(words[3], words[4], contents_of(words[5]), contents_of(words[6])), nullptr);
  if (what == "trace" && words.size() == 4) done = save_trace(words[2], forged_trace(contents_of(words[3])));
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done.ok() ? 0 : 2;
}

}  // namespace
}  // namespace slalom

int main(int argc, char** argv) {
  return slalom::forge({argv, argv + argc});
}
