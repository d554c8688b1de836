// slalom replay: run a finding's schedule again and show what happens.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "campaign/campaign.h"
#include "cli/core/command.h"
#include "cli/core/consent.h"
#include "cli/kernel/kernel_debug.h"
#include "finding/capsule.h"
#include "finding/finding_json.h"
#include "process/launch/surroundings.h"
#include "report/finding_words.h"
#include "report/text.h"
#include "report/trace_text.h"
#include "targets/kernel_test.h"
#include "targets/program.h"
#include "trace/files/trace_stream.h"
#include "vm/replay/instruction_trace.h"

namespace slalom {
namespace {

struct ReplayArguments {
  std::string capsule;
  std::string choices = "as found";
  std::string save_trace;
  std::string program;
  uint32_t times = 1;
  bool trace = false, trace_check = false, original = false, full = false, json = false;
  bool gdb = false, gdb_start = false, trust = false;
  std::vector<std::string> gdb_commands;
};

// Runs the same execution once more, with gdb attached.
Result<Exit> debug(const ReplayArguments& arguments, const Finding& finding) {
  if (finding.target.kind == "kernel")
    return debug_kernel(finding, {.begin = arguments.gdb_start ? KernelDebugOptions::Begin::Start
                                                               : KernelDebugOptions::Begin::Failure,
                                  .commands = arguments.gdb_commands});
  if (finding.target.kind != "program") return error("--gdb is for programs and kernels");
  Debugger::Options options;
  if (arguments.gdb_start) options.begin = Debugger::Options::Begin::Start;
  // If nothing stops the program, gdb stops at the last step that the finding mentions.
  const BugKind kind = finding.verdict.kind;
  if (kind == BugKind::DataRace || kind == BugKind::WeakMemory || kind == BugKind::UseAfterFree ||
      kind == BugKind::DoubleFree)
    for (const Evidence& evidence : finding.verdict.evidence)
      options.show_at = std::max(options.show_at, evidence.step.raw + 1);
  if (!arguments.gdb_commands.empty()) options.arguments.emplace_back("-batch");
  for (const std::string& command : arguments.gdb_commands) {
    options.arguments.emplace_back("-ex");
    options.arguments.push_back(command);
  }
  const auto debugger = std::make_shared<Debugger>(options);
  TRY_ASSIGN(const Target target, open_program(finding.target, arguments.program, debugger));
  TRY_ASSIGN(const Replay replay, replay_finding(target, finding, finding.policy, nullptr));
  debugger->wait();
  std::cout << (replay.same() ? "the same again" : "NOT the same again") << "\n";
  return replay.same() ? Exit::Findings : Exit::Clean;
}

// Prints every instruction of a kernel's execution on standard output, even if that is millions of lines.
Result<Exit> trace_kernel(const Finding& finding, const ChoicePolicy& policy, bool with_check) {
  TRY_ASSIGN(const std::unique_ptr<KernelReplay> replay, replay_kernel(finding, policy, open_options()));
  vm::ScheduledRun run(*replay->machine, replay->course);
  if (!run.leads_to_the_same_end())
    return error("going through the schedule once more led to another state: please report this");
  fmt::print("# slalom: the instructions of an execution (docs/formats.md), version 1\n# {}\n",
             printable(finding.verdict.title));
  vm::InstructionTrace trace(run, *replay->test.names, stdout);
  bool written = trace.write_flows();
  if (const uint64_t check = run.check_left(); written && check > 0) {
    fmt::print("# the flows are done; the check after them has {} instructions{}\n", check,
               with_check ? "" : ", which --trace-check shows, too");
    if (with_check) written = trace.write_check();
  }
  if (!written) return error("the trace cannot be written: is the disk full?");
  const bool same = replay->replay.same();
  fmt::print("# {} instructions; {}\n", trace.instructions(), same ? "the same again" : "NOT the same again");
  return same ? Exit::Findings : Exit::Clean;
}

std::string state_in_words(uint64_t hash, bool compared) {
  if (hash == 0) return {};
  return fmt::format("; {}state hash {:#018x}{}", compared ? "same " : "", hash,
                     compared ? "" : ", with none to compare it with");
}

// Records the replay that is reported: for the report in memory, if it is not too long for one, and in a
// file.
class ReplayRecorder final : public EventSink {
 public:
  // `path`: empty if the trace is not saved.
  ReplayRecorder(std::string path, TraceInfo info) : path_(std::move(path)), info_(std::move(info)) {}

  Result<EventSink*> begin(const Names& names) {
    if (!path_.empty()) {
      TRY_ASSIGN(writer_, TraceWriter::create(path_, info_, names));
    }
    return this;
  }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    if (writer_ != nullptr) writer_->on_accesses(accesses, header);
    if (keeps(accesses.size())) log_.on_accesses(accesses, header);
  }
  void on_event(const Event& event) override {
    if (writer_ != nullptr) writer_->on_event(event);
    if (keeps(1)) log_.on_event(event);
  }
  void on_end(const Outcome& outcome) override {
    if (writer_ != nullptr) writer_->on_end(outcome);
    log_.on_end(outcome);
  }
  Result<void> close() { return writer_ != nullptr ? writer_->close() : Result<void>(); }

  const TraceLog& log() const { return log_; }
  bool too_long() const { return kept_ > kMostKept; }

 private:
  // Accesses and events of the longest report. They take 300 MB of memory; a longer report would not be read.
  static constexpr uint64_t kMostKept = 5'000'000;
  // Keeps everything if there is no file, because the user has nothing else to look at.
  bool keeps(uint64_t more) {
    if (writer_ == nullptr) return true;
    if (too_long()) return false;
    kept_ += more;
    if (too_long()) log_.clear();
    return !too_long();
  }

  const std::string path_;
  const TraceInfo info_;
  std::unique_ptr<TraceWriter> writer_;
  TraceLog log_;
  uint64_t kept_ = 0;  // accesses and events
};

Result<Target> open(const TargetId& id, const std::string& program) {
  return program.empty() ? open_target(id, open_options()) : open_program(id, program, nullptr);
}

Result<Exit> replay(const ReplayArguments& arguments) {
  TRY_ASSIGN(const Capsule capsule, open_capsule(arguments.capsule));
  Finding finding = capsule.finding;
  if (!arguments.program.empty() && finding.target.kind != "program")
    return error("--program is for capsules of slalom run; this one is of a {}", finding.target.kind);
  TRY(check_consent(capsule, {.trust = arguments.trust,
                              .debugs = arguments.gdb || arguments.gdb_start,
                              .program_at = arguments.program}));
  if (arguments.original && finding.schedule != finding.original) {
    finding.schedule = finding.original;
    finding.state_hash = 0;  // it belongs to the shortened schedule
  }
  if (arguments.gdb || arguments.gdb_start) return debug(arguments, finding);
  ChoicePolicy policy = finding.policy;
  if (arguments.choices != "as found") {
    TRY_ASSIGN(policy, parse_choices(arguments.choices));
  }
  // A kernel may have to boot first, and its replay then takes a moment, so an interrupt ends it in order. A
  // program may run as long as it likes, so an interrupt just ends it.
  if (finding.target.kind == "kernel") watch_interrupt();
  if (arguments.trace_check && finding.target.kind != "kernel") return error("--trace-check is for kernels");
  if ((arguments.trace || arguments.trace_check) && finding.target.kind == "kernel")
    return trace_kernel(finding, policy, arguments.trace_check);
  TRY_ASSIGN(const Target target, open(finding.target, arguments.program));

  TRY(run_preliminary(target, interrupted));
  // The evidence for judging the execution may be incomplete.
  if (interrupted()) return error("interrupted before it was replayed");
  TRY_ASSIGN(const std::unique_ptr<Machine> machine, target.make_machine({}));
  ReplayRecorder recorder(arguments.save_trace, {.kind = finding.target.kind,
                                                 .target = finding.target.name,
                                                 .detectors = target.defaults.detectors,
                                                 .races_count = target.defaults.races_count});
  const MakeSink record = [&](const Names& names) { return recorder.begin(names); };
  Replay first;
  uint32_t same = 0, tried = 0;
  // Differences that may explain why the replay is not the same. They are harmless if the bug shows.
  std::vector<std::string> differ;
  while (tried < arguments.times && (tried == 0 || !interrupted())) {
    TRY_ASSIGN(Replay replay, replay_finding(target, finding, policy, tried == 0 ? record : MakeSink()));
    same += replay.same();
    if (!replay.same() && differ.empty()) differ = replay.calls;
    if (tried++ == 0) first = std::move(replay);
  }
  finding.replays_tried = tried;
  finding.replays_same = same;
  if (first.verdict) finding.verdict = *first.verdict;
  const bool compared = finding.state_hash != 0;
  finding.state_hash = target.traits.keeps_states ? first.execution.state_hash : 0;
  TRY(recorder.close());
  if (same < tried && target.reports.surroundings)
    std::ranges::copy(differences(finding.surroundings, target.reports.surroundings()),
                      std::back_inserter(differ));

  if (arguments.json) {
    FindingWords words;
    if (!recorder.too_long()) {
      finding = in_words(finding, recorder.log(), machine->names());
      words = words_of(finding, recorder.log(), machine->names());
    }
    nlohmann::ordered_json json = finding_json(finding, arguments.capsule, words);
    json["same"] = same == tried;
    if (first.divergence) json["divergence"] = *first.divergence;
    if (same < tried) json["differences"] = differ;
    std::cout << json_text(json);
  } else {
    TextOptions text;
    text.width = terminal_width();
    text.colour = output_style().on;
    text.ascii = !is_terminal(STDOUT_FILENO);
    if (arguments.full) text.detail = TextOptions::Detail::Everything;
    text.switch_kinds = switch_kinds(first.execution);
    if (recorder.too_long())
      std::cout << wrap(
          fmt::format("The execution is too long for a report. All of it is in {0}: print it with "
                      "`slalom trace {0}`.",
                      printable(arguments.save_trace)),
          text.width, 0, 0);
    else if (first.verdict)
      std::cout << text_report(finding, recorder.log(), machine->names(), text);
    if (arguments.trace && !recorder.too_long()) {
      std::cout << "\n";
      print_trace(std::cout, recorder.log(), machine->names());
    }
    const Style style = output_style();
    if (first.verdict || arguments.trace) std::cout << "\n";
    if (same == tried)
      std::cout << style.paint(Ink::Green, tried == 1 ? "the same again"
                                                      : fmt::format("the same in {0} of {0} replays", same))
                << state_in_words(finding.state_hash, compared) << "\n";
    else
      std::cout << style.paint(Ink::Red, fmt::format("NOT the same: seen again in {} of {}", same,
                                                     plural(tried, "replay")))
                << "\n"
                << wrap("expected: " + printable(finding.verdict.title), text.width, 2, 4)
                << (first.divergence ? wrap(printable(*first.divergence), text.width, 2, 4) : "");
    for (const std::string& one : differ) std::cout << wrap("differs: " + printable(one), text.width, 2, 4);
  }
  return same == tried ? Exit::Findings : Exit::Clean;
}

}  // namespace

void add_replay(CLI::App& app, Run& run) {
  auto a = std::make_shared<ReplayArguments>();
  CLI::App* verb = app.add_subcommand("replay", "Run the schedule of a finding again, exactly as it was.");
  verb->add_option("CAPSULE", a->capsule, "a capsule.slalom, as printed by explore, or its folder")
      ->required()
      ->type_name("");
  verb->add_option("--times", a->times, "how often")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(1, 1'000'000));
  verb->add_option("--choices", a->choices, "replay under another choice policy: everywhere, sync, nowhere")
      ->capture_default_str()
      ->type_name("W");
  verb->add_option("--save-trace", a->save_trace,
                   "write the whole trace to a file, for slalom trace and slalom detect")
      ->type_name("FILE");
  verb->add_flag("--trace", a->trace,
                 "print the whole interleaving; of a kernel, only that: every instruction");
  verb->add_flag("--trace-check", a->trace_check,
                 "of a kernel: the same, with every instruction of the check after the flows");
  verb->add_option("--program", a->program, "of a program that was moved: where it is now")
      ->type_name("PATH");
  add_trust_option(*verb, a->trust);
  verb->add_flag("--original", a->original, "the schedule as it was found, before it was shrunk");
  verb->add_flag("--full", a->full, "all operations in the report");
  verb->add_flag("--gdb", a->gdb,
                 "gdb at the failure, with all threads, or CPUs, where the schedule put them");
  verb->add_flag("--gdb-start", a->gdb_start,
                 "the same, at the start; in programs, next-switch runs a thread until preempted");
  verb->add_option("--gdb-command", a->gdb_commands, "what gdb is to do; then it ends (may be repeated)")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  verb->add_flag("--json", a->json, "result as JSON on standard output (docs/formats.md)");
  verb->footer("Exit code: 1 if the bug shows again every time, 0 if it does not.\n");
  verb->callback([a, &run] { run = [a] { return replay(*a); }; });
}

}  // namespace slalom
