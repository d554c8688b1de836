#include "vm/gdb/stub.h"

#include <algorithm>

namespace slalom::vm {
namespace {

std::string_view activity_name(Activity activity) {
  switch (activity) {
    case Activity::Running:
      return "running";
    case Activity::Halted:
      return "halted";
    case Activity::WaitForSipi:
      return "not started";
    case Activity::Shutdown:
      return "gave up";
  }
  return "";
}

std::string_view end_sentence(PcStop stop) {
  switch (stop) {
    case PcStop::PowerOff:
      return "The guest switched itself off";
    case PcStop::Reset:
      return "The guest asked to be restarted";
    case PcStop::Shutdown:
      return "A CPU gave up after a triple fault";
    case PcStop::Exit:
      return "The guest ended";
    case PcStop::Idle:
      return "Every CPU waits, and nothing is left that could wake one";
    case PcStop::Unknown:
      return "The guest needs something that slalom does not have";
    case PcStop::Budget:
    case PcStop::Place:
    case PcStop::Access:
    case PcStop::Halted:
    case PcStop::Paused:
    case PcStop::Event:
    case PcStop::Hypercall:
    case PcStop::Window:
      break;
  }
  return "Stopped";
}

constexpr std::string_view kHelp =
    "hash      the hash of the whole machine: equal states have equal ones\n"
    "position  instructions that all CPUs have executed so far, and since when one can go back\n";

}  // namespace

void GdbStub::new_client() {
  cpu_ = run_cpu_ = last_.cpu;
  reports_breaks_ = reports_hardware_breaks_ = false;
  acknowledges_ = true;
  debugger_.breakpoints.clear();
  debugger_.watchpoints.clear();
  hardware_breaks_.clear();
}

std::vector<std::string> GdbStub::answer(std::string_view packet) {
  before_.clear();
  std::string last = one_answer(packet);
  std::vector<std::string> all = std::move(before_);
  if (!killed()) all.push_back(std::move(last));
  return all;
}

std::string GdbStub::one_answer(std::string_view packet) {
  if (packet.empty()) return "";
  const char command = packet.front();
  FieldReader in(packet.substr(1));
  switch (command) {
    case '?':
      return stop_reply(last_);
    case 'q':
      return query(in);
    case 'Q':
      return set_option(in);
    case 'v':
      return verbose(in);
    case 'H':
      return select_thread(in);
    case 'T':
      return thread_alive(in);
    case 'g':
      return read_registers();
    case 'G':
      return write_registers(in);
    case 'p':
      return read_register(in);
    case 'P':
      return write_register(in);
    case 'm':
      return read_memory(in);
    case 'M':
      return write_memory(in, false);
    case 'X':
      return write_memory(in, true);
    case 'Z':
      return set_point(in, true);
    case 'z':
      return set_point(in, false);
    case 's':
      if (!in.at_end()) return error_text("set the program counter first, then step");
      return resume(Resume::Step, std::nullopt);
    case 'c':
      if (!in.at_end()) return error_text("set the program counter first, then continue");
      return resume(Resume::Continue, std::nullopt);
    case 'b':
      if (in.rest() == "s") return resume(Resume::StepBack, std::nullopt);
      if (in.rest() == "c") return resume(Resume::ContinueBack, std::nullopt);
      return "";
    case 'D':
      end_ = End::Detached;
      return "OK";
    case 'k':
      end_ = End::Killed;
      return "";
    default:
      return "";
  }
}

std::string GdbStub::query(FieldReader in) {
  if (in.take("Supported")) return supported(in);
  if (in.take("Xfer:features:read:")) return transfer_features(in);
  if (in.take("fThreadInfo")) {
    std::string all = "m";
    for (unsigned i = 1; i <= debugger_.pc().cpu_count(); ++i)
      all += fmt::format("{}{:x}", i > 1 ? "," : "", i);
    return all;
  }
  if (in.take("sThreadInfo")) return "l";
  if (in.take("ThreadExtraInfo,")) return thread_information(in);
  if (in.take("Attached")) return "1";
  if (in.take("Rcmd,")) return monitor(in.rest());
  if (in.rest() == "C") return fmt::format("QC{:x}", cpu_ + 1);
  return "";
}

std::string GdbStub::supported(FieldReader in) {
  in.take(":");
  while (!in.at_end()) {
    const std::string_view feature = in.until(';');
    if (feature == "swbreak+") reports_breaks_ = true;
    if (feature == "hwbreak+") reports_hardware_breaks_ = true;
  }
  return fmt::format(
      "PacketSize={:x};qXfer:features:read+;swbreak+;hwbreak+;ReverseStep+;ReverseContinue+;vContSupported+;"
      "QStartNoAckMode+",
      PacketReader::kLongest);
}

std::string GdbStub::set_option(FieldReader in) {
  if (in.rest() != "StartNoAckMode") return "";
  acknowledges_ = false;
  return "OK";
}

std::string GdbStub::transfer_features(FieldReader in) {
  if (in.until(':') != "target.xml") return "E00";
  const auto offset = in.number();
  if (!offset || !in.take(",")) return std::string(kMalformed);
  const auto size = in.number();
  if (!size || !in.at_end()) return std::string(kMalformed);
  const std::string_view xml = registers_.target_xml();
  if (*offset >= xml.size()) return "l";
  // Escaping may double the length.
  const std::string_view part =
      xml.substr(*offset, std::min<uint64_t>(*size, PacketReader::kLongest / 2 - 1));
  return (*offset + part.size() < xml.size() ? "m" : "l") + std::string(part);
}

std::optional<unsigned> GdbStub::cpu_of_thread(uint64_t thread) {
  if (thread == 0 || thread > debugger_.pc().cpu_count()) return std::nullopt;
  return static_cast<unsigned>(thread - 1);
}

std::string GdbStub::select_thread(FieldReader in) {
  const bool registers = in.take("g");
  if (!registers && !in.take("c")) return "";
  if (in.rest() == "-1" || in.rest() == "0") {  // all threads, or any
    if (!registers) run_cpu_ = last_.cpu;
    return "OK";
  }
  const auto thread = in.number();
  if (!thread || !in.at_end()) return std::string(kMalformed);
  const auto cpu = cpu_of_thread(*thread);
  if (!cpu) return std::string(kMalformed);
  (registers ? cpu_ : run_cpu_) = *cpu;
  return "OK";
}

std::string GdbStub::thread_alive(FieldReader in) {
  const auto thread = in.number();
  return thread && in.at_end() && cpu_of_thread(*thread) ? "OK" : std::string(kMalformed);
}

std::string GdbStub::thread_information(FieldReader in) {
  const auto thread = in.number();
  const auto cpu = thread && in.at_end() ? cpu_of_thread(*thread) : std::nullopt;
  if (!cpu) return std::string(kMalformed);
  return to_hex(fmt::format("CPU {} [{}]", *cpu, activity_name(debugger_.pc().cpu(*cpu).regs.activity)));
}

std::string GdbStub::verbose(FieldReader in) {
  if (in.rest() == "Cont?") return "vCont;c;C;s;S";
  if (in.take("Cont;")) return resume_threads(in);
  if (in.take("Kill")) {
    end_ = End::Killed;
    before_.push_back("OK");
  }
  return "";
}

// Handles the actions for each thread. The machine knows only two ways to run: all CPUs take turns until one
// of them has made its step, or without that end. So a thread without an action runs, too.
std::string GdbStub::resume_threads(FieldReader in) {
  std::optional<unsigned> stepped;
  bool any = false;
  while (!in.at_end()) {
    FieldReader action(in.until(';'));
    const bool with_signal = action.rest().starts_with('S') || action.rest().starts_with('C');
    const bool steps = action.take("s") || action.take("S");
    if (!steps && !action.take("c") && !action.take("C")) return std::string(kMalformed);
    if (with_signal && !action.number()) return std::string(kMalformed);  // CPUs have no signals
    unsigned cpu = run_cpu_;
    if (action.take(":") && !action.take("-1")) {
      const auto thread = action.number();
      const auto named = thread ? cpu_of_thread(*thread) : std::nullopt;
      if (!named) return std::string(kMalformed);
      cpu = *named;
    }
    if (!action.at_end()) return std::string(kMalformed);
    if (steps && !stepped) stepped = cpu;
    any = true;
  }
  if (!any) return std::string(kMalformed);
  return resume(stepped ? Resume::Step : Resume::Continue, stepped);
}

std::string GdbStub::resume(Resume how, std::optional<unsigned> cpu) {
  const unsigned one = cpu.value_or(run_cpu_);
  switch (how) {
    case Resume::Step:
      last_ = debugger_.step(one);
      break;
    case Resume::Continue:
      last_ = debugger_.go();
      break;
    case Resume::StepBack:
      last_ = debugger_.step_back(one);
      break;
    case Resume::ContinueBack:
      last_ = debugger_.go_back();
      break;
  }
  cpu_ = run_cpu_ = last_.cpu;
  if (last_.kind == DebugStop::Kind::End) {
    const std::string own = last_.why == PcStop::Exit ? debugger_.end_sentence() : "";
    std::string text =
        fmt::format("{}. One can still go back.\n", own.empty() ? end_sentence(last_.why) : own);
    if (last_.why == PcStop::Unknown) text += debugger_.pc().trouble();
    before_.push_back("O" + to_hex(text));
  }
  return stop_reply(last_);
}

std::string GdbStub::stop_reply(const DebugStop& stop) {
  std::string more;
  unsigned signal = 5;  // SIGTRAP
  switch (stop.kind) {
    case DebugStop::Kind::Step:
      break;
    case DebugStop::Kind::Break:
      if (hardware_breaks_.contains(debugger_.address_of(stop.cpu)))
        more = reports_hardware_breaks_ ? "hwbreak:;" : "";
      else
        more = reports_breaks_ ? "swbreak:;" : "";
      break;
    case DebugStop::Kind::Watch: {
      constexpr std::string_view kNames[] = {"watch", "rwatch", "awatch"};
      more = fmt::format("{}:{:x};", kNames[static_cast<size_t>(stop.watch.kind)], stop.address);
      break;
    }
    case DebugStop::Kind::Interrupted:
      signal = 2;
      break;
    case DebugStop::Kind::Begin:
      more = "replaylog:begin;";
      break;
    case DebugStop::Kind::End:
      more = "replaylog:end;";
      break;
  }
  return fmt::format("T{:02x}thread:{:x};{}", signal, stop.cpu + 1, more);
}

std::string GdbStub::monitor(std::string_view hex) {
  const auto bytes = from_hex(hex);
  if (!bytes) return std::string(kMalformed);
  const std::string command(bytes->begin(), bytes->end());
  if (command == "hash") return to_hex(fmt::format("{:016x}\n", debugger_.pc().state_hash()));
  if (command == "position")
    return to_hex(fmt::format("{} (history begins at {})\n", debugger_.position().executed,
                              debugger_.begin().executed));
  if (command == "help") return to_hex(kHelp);
  return to_hex(fmt::format("slalom knows no \"{}\". What it knows:\n{}", command, kHelp));
}

}  // namespace slalom::vm
