// Makes files that slalom would never write: what somebody could send to a user. For tests of the command.
//
//   forge capsule OUT KIND NAME CONTENT TEXT [STEPS]   a capsule of that target, with TEXT wherever it has
//                                              words, and that limit of steps
//   forge trace OUT TEXT                       a trace whose events have TEXT
//   forge long-trace OUT COUNT                 a trace of COUNT accesses by two threads, with one race at its
//   end
//
// CONTENT and TEXT are files.
#include <cstdio>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "finding/capsule.h"
#include "finding/signing_key.h"
#include "trace/files/trace_stream.h"
#include "trace/trace_log.h"

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

// Calls everything by the text.
class ForgedNames final : public Names {
 public:
  explicit ForgedNames(std::string text) : text_(std::move(text)) {}
  std::string agent(AgentId) const override { return text_; }
  std::string role(AgentId) const override { return text_; }
  std::string object(ObjectId) const override { return text_; }
  std::string place(Place) const override { return text_; }
  std::string source(Place) const override { return text_; }
  std::string line(Place) const override { return text_; }

 private:
  std::string text_;
};

Result<void> save_forged_trace(const char* path, const std::string& text) {
  const ForgedNames names(text);
  TRY_ASSIGN(const std::unique_ptr<TraceWriter> writer,
             TraceWriter::create(path, {.kind = text, .target = text}, names));
  forged_trace(text).replay_into(*writer);
  return writer->close();
}

Result<void> save_long_trace(const char* path, uint64_t count) {
  const StoredNames names;  // numbers
  TRY_ASSIGN(const std::unique_ptr<TraceWriter> writer,
             TraceWriter::create(path, {.kind = "program", .target = "long"}, names));
  constexpr uint64_t kBatch = 1000;
  std::vector<Access> batch(kBatch);
  Rng rng(1);
  const auto access = [&](uint64_t pc, uint64_t address, uint64_t retired) {
    Access made = {};
    made.pc_bits = pc;
    made.op_bits = static_cast<uint64_t>(OpKind::Store);
    made.size = 8;
    made.address_bits = address;
    made.retired = retired;
    made.wrote = 1;
    made.value = rng.next();
    return made;
  };
  for (uint64_t first = 0; first < count; first += kBatch) {
    const uint32_t thread = first / kBatch % 2;  // each with its own memory
    for (uint64_t i = 0; i < kBatch; ++i)
      batch[i] = access(0x401000 + 4 * (i % 100), 0x10000000 * (thread + 1) + 8 * rng.below(10'000), i);
    writer->on_accesses(batch, {AgentId::initial(thread), 0, Step{first}});
  }
  for (uint32_t thread = 0; thread < 2; ++thread)
    writer->on_accesses(std::vector<Access>{access(0x777000, 0x888000, thread)},
                        {AgentId::initial(thread), 0, Step{count}});
  writer->on_end(Exited{});
  return writer->close();
}

int forge(const std::vector<const char*>& words) {
  const std::string what = words.size() > 1 ? words[1] : "";
  Result<void> done = error(
      "usage: forge capsule OUT KIND NAME CONTENT TEXT [STEPS] | forge trace OUT TEXT | forge long-trace OUT "
      "COUNT");
  if (what == "capsule" && (words.size() == 7 || words.size() == 8)) {
    Finding finding = forged_finding(words[3], words[4], contents_of(words[5]), contents_of(words[6]));
    if (words.size() == 8) finding.max_steps = std::stoull(words[7]);
    done = save_capsule(words[2], finding, nullptr);
  }
  if (what == "trace" && words.size() == 4) done = save_forged_trace(words[2], contents_of(words[3]));
  if (what == "long-trace" && words.size() == 4) done = save_long_trace(words[2], std::stoull(words[3]));
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done.ok() ? 0 : 2;
}

}  // namespace
}  // namespace slalom

int main(int argc, char** argv) {
  return slalom::forge({argv, argv + argc});
}
