#include "vm/scenario/prepare.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/log.h"
#include "inputs/image.h"
#include "kernel_store/kernel_cache.h"
#include "vm/control/hypercall.h"
#include "vm/scenario/machine_cache.h"
#include "vm/scenario/plan.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kSlice = 1'000'000;
// Instructions that run after the flows are ready, so that work which their start has caused can finish.
constexpr uint64_t kSettle = 20'000'000;
// Instructions allowed while flows are collected. CPUs stand still then, and others may wait for one of them.
constexpr uint64_t kCollect = 200'000'000;
constexpr int kAttempts = 4;
// A prepared call that takes longer blocks: in instructions, and in nanoseconds of waiting.
constexpr uint64_t kPreparedCall = 500'000'000;
constexpr uint64_t kPreparedWait = 10'000'000'000;
constexpr size_t kMaxConsole = 1 << 20;
constexpr size_t kMaxOutput = 64 * 1024;
constexpr size_t kShownLines = 12;
constexpr uint64_t kGo = 0, kAgain = 1;

constexpr std::string_view kPanic = "Kernel panic";

// Returns the last lines of the console. After a panic, all lines from there on, because the registers come
// last.
std::string shown_lines(const std::string& console) {
  std::vector<std::string> lines;
  std::istringstream in(console);
  size_t panic = std::string::npos;
  for (std::string line; std::getline(in, line);) {
    std::erase(line, '\r');
    if (line.empty()) continue;
    if (panic == std::string::npos && line.find(kPanic) != std::string::npos) panic = lines.size();
    lines.push_back(line);
  }
  if (lines.empty()) return "\n  The console is empty.";
  const size_t first = panic != std::string::npos   ? panic
                       : lines.size() > kShownLines ? lines.size() - kShownLines
                                                    : 0;
  std::string text = panic != std::string::npos ? "\n  The console:" : "\n  The console's last lines:";
  for (size_t i = first; i < std::min(lines.size(), first + kShownLines); ++i) text += "\n    " + lines[i];
  return text;
}

std::vector<KernelThread> parse_threads(const std::string& text) {
  std::vector<KernelThread> threads;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    // Thread names may contain spaces.
    const size_t how = line.rfind(' ');
    const size_t cpu = how == std::string::npos || how == 0 ? how : line.rfind(' ', how - 1);
    if (cpu == std::string::npos) continue;
    const std::string_view word = std::string_view(line).substr(how + 1);
    threads.push_back({.name = line.substr(0, cpu),
                       .cpu = std::atoi(line.c_str() + cpu + 1),
                       .where = word == "pinned"  ? KernelThread::Where::Pinned
                                : word == "bound" ? KernelThread::Where::Bound
                                                  : KernelThread::Where::Free});
  }
  std::sort(threads.begin(), threads.end(), [](const KernelThread& a, const KernelThread& b) {
    return std::tie(a.name, a.cpu) < std::tie(b.name, b.cpu);
  });
  return threads;
}

// Answers the hypercalls of the agent and the flows until the test can begin.
class Preparation final : public Hypercalls {
 public:
  Preparation(const KernelTest& test, const TestPlan& plan, Pc& pc)
      : test_(test),
        plan_(plan),
        pc_(pc),
        ready_(test.flows.size(), false),
        prepared_(test.flows.size() + 1) {
    for (size_t list = 0; list < prepared_.size(); ++list)
      if (test.prepared(list) != nullptr) unfinished_.insert(list);
    pc_.set_hypercalls(this);
  }
  ~Preparation() override { pc_.set_hypercalls(nullptr); }

  Result<void> run(const std::function<bool()>& stops) {
    while (!complete()) {
      if (stops()) return error("interrupted {}", meanwhile());
      if (pc_.executed() >= test_.limits.preparation || waited() >= longest_wait(test_.limits.preparation))
        return never_ready();
      const PcStop stop = pc_.run(std::min(kSlice, test_.limits.preparation - pc_.executed()));
      take_console();
      if (!trouble_.empty()) return told(trouble_);
      if (const std::string call = blocked_call(stop == PcStop::Idle); !call.empty()) return told(call);
      if (stop != PcStop::Budget && stop != PcStop::Hypercall) return told(why_stopped(stop));
      if (collecting() && pc_.executed() - collect_from_ > kCollect) {
        if (++attempts_ == kAttempts) return never_ready();
        collect_from_ = pc_.executed() + kSettle;
        let_go(kAgain);
      }
    }
    let_go(kGo);
    return {};
  }

  const std::string& console() const { return console_; }
  const std::string& threads() const { return threads_; }
  const std::vector<std::vector<uint8_t>>& prepared() const { return prepared_; }

 private:
  bool on_hypercall(Cpu& cpu) override {
    const Hypercall call = hypercall_of(cpu);
    switch (call.number) {
      case SLALOM_PRESENT:
        answer(cpu, SLALOM_VERSION);
        return true;
      case SLALOM_INPUT: {
        std::optional<std::span<const uint8_t>> bytes;
        if (call.a == SLALOM_PLAN)
          bytes = std::span(reinterpret_cast<const uint8_t*>(plan_.text.data()), plan_.text.size());
        if (call.a >= SLALOM_PREPARED)
          if (const CallProgram* list = test_.prepared(call.a - SLALOM_PREPARED)) {
            image_ = encode_image(*list);
            bytes = image_;
          }
        give_bytes(cpu, bytes, call.b, call.c);
        return true;
      }
      case SLALOM_OUTPUT:
        if (call.a == SLALOM_THREADS)
          if (const auto bytes = read_buffer(cpu, call.b, call.c, kMaxOutput))
            threads_.assign(bytes->begin(), bytes->end());
        if (call.a == SLALOM_PART) doing_ = call.b;
        if (call.a == SLALOM_ENDED) trouble_ = ended_early(call.b);
        if (call.a == SLALOM_CALLING) calling_[call.b] = {call.c, pc_.executed(), waited()};
        if (call.a >= SLALOM_PREPARED) on_prepared(cpu, call);
        return trouble_.empty();
      case SLALOM_FLOWS:
        started_ = true;
        settle();
        return true;
      case SLALOM_READY:
        return on_ready(cpu, call.a);
      case SLALOM_FAIL: {
        const std::string text = read_text(cpu, call.a, call.b);
        trouble_ = fmt::format("{} {}", part(call.c), text);
        return false;
      }
      case SLALOM_DONE:
      case SLALOM_CHECKED:
        trouble_ = ended_early(0);
        return false;
      default:  // programs that start too early, and calls of other versions
        answer(cpu, 0);
        return true;
    }
  }

  void settle() { collect_from_ = pc_.executed() + kSettle; }

  void on_prepared(Cpu& cpu, const Hypercall& call) {
    const uint64_t list = call.a - SLALOM_PREPARED;
    if (list >= prepared_.size()) return;
    prepared_[list] = read_buffer(cpu, call.b, call.c, kMaxImage).value_or(std::vector<uint8_t>());
    calling_.erase(list);
    unfinished_.erase(list);
    settle();
  }

  // Describes a prepared call that takes too long; empty if there is none. `idle`: nothing will happen any
  // more.
  std::string blocked_call(bool idle) const {
    for (const auto& [number, call] : calling_) {
      if (!idle && pc_.executed() - call.executed < kPreparedCall && waited() - call.waited < kPreparedWait)
        continue;
      const CallProgram* list = test_.prepared(number);
      if (list == nullptr || call.number >= list->sources.size()) continue;
      const CallProgram::Source& source = list->sources[call.number];
      return fmt::format(
          "{}:{}: the prepared call {} does not return: the flows start when all prepared calls have "
          "returned, "
          "so move it to the calls of a flow",
          test_.file, source.line, source.text);
    }
    return {};
  }

  // Describes a part of the plan, counted from 1; 0: no particular part.
  std::string part(uint64_t number) const {
    if (number == 0 || number > plan_.parts.size()) return fmt::format("{}:", test_.file);
    const PlanPart& one = plan_.parts[number - 1];
    return fmt::format("{}: {}", one.where, one.what);
  }

  std::string ended_early(uint64_t flow) const {
    return fmt::format(
        "{} has ended before all flows were ready: a program must call slalom_begin() with its number, which "
        "is its first argument, and then slalom_end()",
        flow == 0 ? fmt::format("{}: a flow", test_.file) : part(flow));
  }

  // How long all CPUs were idle, in nanoseconds.
  uint64_t waited() const {
    const uint64_t worked = pc_.executed() * kNanosecondsPerInstruction;
    return pc_.time() - std::min(pc_.time(), worked);
  }

  bool on_ready(Cpu& cpu, uint64_t flow) {
    if (flow >= ready_.size() || flow != cpu.id) {
      trouble_ = fmt::format(
          "{}: a program on CPU {} says that it is flow {}: a flow's number is its first argument",
          test_.file, cpu.id, flow);
      return false;
    }
    answer(cpu, kAgain);
    if (!collecting()) return true;
    ready_[flow] = true;
    pc_.park(cpu.id, true);
    return !complete();
  }

  bool collecting() const { return started_ && unfinished_.empty() && pc_.executed() >= collect_from_; }
  bool complete() const {
    return std::all_of(ready_.begin(), ready_.end(), [](bool is) { return is; });
  }

  void let_go(uint64_t with) {
    for (unsigned i = 0; i < ready_.size(); ++i) {
      if (!ready_[i]) continue;
      answer(pc_.cpu(i), with);
      pc_.park(i, false);
      ready_[i] = false;
    }
  }

  void take_console() {
    console_ += pc_.devices().take_console_output();
    if (console_.size() > kMaxConsole) console_.erase(0, console_.size() - kMaxConsole);
  }

  Error told(const std::string& what) const { return error("{}{}", what, shown_lines(console_)); }

  std::string why_stopped(PcStop stop) const {
    const std::string where =
        test_.kernel_line == 0 ? test_.file : fmt::format("{}:{}", test_.file, test_.kernel_line);
    if (console_.find(kPanic) != std::string::npos)
      return fmt::format("{}: the kernel {} has panicked before the test could begin", where, test_.kernel);
    if (stop == PcStop::Unknown || stop == PcStop::Shutdown)
      return fmt::format("{}: {}", where, pc_.trouble());
    if (stop == PcStop::Idle)
      return fmt::format("{}: the machine waits for something that never comes, before the test could begin",
                         where);
    return fmt::format("{}: the machine has switched itself off before the test could begin", where);
  }

  std::string meanwhile() const {
    if (started_) return "while the flows were getting ready";
    return doing_ == 0 ? fmt::format("while {} was booting", test_.kernel)
                       : fmt::format("at {}", part(doing_));
  }

  Error never_ready() const {
    if (!started_)
      return told(
          fmt::format("{} has not ended after {} million instructions and {} seconds of waiting; [limits] "
                      "preparation = ... gives it more",
                      doing_ == 0 ? fmt::format("{}: the set-up", test_.file) : part(doing_),
                      pc_.executed() / 1'000'000, waited() / 1'000'000'000));
    std::string missing;
    for (size_t i = 0; i < ready_.size(); ++i)
      if (!ready_[i])
        missing += fmt::format("{}{}:{}: {} never got ready", missing.empty() ? "" : "\n", test_.file,
                               test_.flows[i].line, test_.flows[i].name);
    return told(missing);
  }

  const KernelTest& test_;
  const TestPlan& plan_;
  Pc& pc_;
  std::vector<bool> ready_;  // by flow: has called SLALOM_READY, and stands still
  bool started_ = false;     // all flows are ready
  uint64_t doing_ = 0;       // the part of the plan that the agent executes
  uint64_t collect_from_ = 0;
  int attempts_ = 0;
  struct Calling {
    uint64_t number = 0;                // of the call in its list
    uint64_t executed = 0, waited = 0;  // when it began
  };
  std::map<uint64_t, Calling> calling_;         // by prepared list
  std::set<uint64_t> unfinished_;               // prepared lists
  std::vector<std::vector<uint8_t>> prepared_;  // results by list
  std::vector<uint8_t> image_;                  // the last prepared list that the guest got
  std::string trouble_;
  std::string console_;
  std::string threads_;
};

// Makes all that the guest reads before the flows start.
std::string text_for_guest(const KernelTest& test, const TestPlan& plan) {
  std::string text = plan.text;
  for (size_t list = 0; list <= test.flows.size(); ++list)
    if (const CallProgram* prepared = test.prepared(list)) {
      const std::vector<uint8_t> image = encode_image(*prepared);
      text += fmt::format("{}:{}:", list, image.size());
      text.append(image.begin(), image.end());
    }
  return text;
}

Result<void> check_kernel(const KernelTest& test) {
  TRY_ASSIGN(const KernelCache kernels, KernelCache::open());
  const Result<Kernel> kernel = find_kernel(kernels, test.kernel);
  if (kernel.ok() || test.kernel_line == 0) return kernel.ok() ? Result<void>() : kernel.error();
  return error("{}:{}: {}", test.file, test.kernel_line, kernel.error().message);
}

}  // namespace

Result<PreparedTest> prepare(const KernelTest& test, const PrepareOptions& options) {
  TRY(check_kernel(test));
  TRY_ASSIGN(const TestPlan plan, plan_of(test));
  TRY_ASSIGN(const Kernel kernel, kernel_of(plan.boot));
  TRY_ASSIGN(const ContentName names, content_name(plan.boot, text_for_guest(test, plan)));
  const std::string& content = names.name;
  TRY_ASSIGN(const MachineCache cache, MachineCache::open());
  PreparedTest prepared{
      .modules = plan.modules, .parts = plan.parts, .content = content, .former_content = names.former};
  if (!kernel.packages.empty()) prepared.kernel = kernel.exact_name();
  std::optional<KeptMachine> kept;
  if (options.use_cache) kept = cache.find(content);
  prepared.from_cache = kept.has_value();
  if (!kept) {
    options.progress(fmt::format("booting {} with {} CPUs", test.kernel, test.cpus));
    kept.emplace();
    TRY_ASSIGN(kept->machine, boot(plan.boot));
    Preparation preparation(test, plan, *kept->machine.pc);
    TRY(preparation.run(options.stop));
    DEBUG_LOG(Vm, "prepared machine {}: {} flows are ready after {} instructions", content, test.flows.size(),
              kept->machine.pc->executed());
    kept->console = preparation.console();
    kept->threads = preparation.threads();
    kept->prepared = preparation.prepared();
    if (options.use_cache) TRY(cache.keep(content, *kept));
  }
  prepared.machine = std::move(kept->machine);
  prepared.machine.kernel = kernel.exact_name();  // the cached machine may have been made from another name
  prepared.console = std::move(kept->console);
  prepared.threads = parse_threads(kept->threads);
  for (const KernelTest::Flow& flow : test.flows)
    prepared.images.push_back(flow.kind == KernelTest::Flow::Kind::Calls ? encode_image(flow.calls)
                                                                         : std::vector<uint8_t>());
  return prepared;
}

}  // namespace slalom::vm
