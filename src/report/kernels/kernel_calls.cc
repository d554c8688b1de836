#include "report/kernels/kernel_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "report/kernels/kernel_relevance.h"
#include "trace/call_stacks.h"

namespace slalom {
namespace {

constexpr size_t kNamed = 3;         // number of omitted calls that are named
constexpr size_t kMostLines = 36;    // a longer tree is no help
constexpr size_t kChain = 5;         // calls in one line
constexpr size_t kMostSwitches = 8;  // with more switches, only calls that lead to evidence are shown

class Calls {
 public:
  Calls(const KernelTrace& trace, const Interleaving& switches, const Finding& finding,
        const Outcome& outcome, const Names& names, TimelineDetail detail, const Glyphs& glyphs)
      : trace_(trace),
        outcome_(outcome),
        names_(names),
        everything_(detail == TimelineDetail::Everything),
        glyphs_(glyphs),
        evidence_(evidence_operations(trace, finding.verdict)),
        nodes_(1) {
    for (const KernelRun& run : trace.runs) leaving_.push_back(run.leaving);
    for (const AgentSwitch& change : switches.switches)
      if (change.at > 0 && change.at < trace.runs.size()) leaving_[change.at - 1] = change.leaving;
    for (const Evidence& one : finding.verdict.evidence) texts_[{one.agent, one.pc}] = one.text;
  }

  std::vector<CallLine> make() {
    for (size_t run = 0; run < trace_.runs.size(); ++run) follow(run);
    if (!some_calls_) return {};
    add_ends();
    for (const auto& [agent, flow] : flows_)
      for (const size_t root : flow.roots)
        if (is_shown(nodes_[root])) {
          lines_.push_back({0, root_text(agent, root), agent, false});
          print(root, 1);
        }
    if (!everything_ && lines_.size() > kMostLines) cut();
    return std::move(lines_);
  }

 private:
  // A call. The root of a flow or of a system call is a Node without a function.
  struct Node {
    Place function;
    std::string title;  // shown instead of a function
    size_t parent = 0;
    bool marked = false;   // this call, or one below it, has a mark
    bool evident = false;  // one of these marks is evidence
    struct Item {
      size_t call = 0;  // index of a node; 0: a mark
      std::string mark;
      bool evidence = false;
    };
    std::vector<Item> items;
  };
  struct Frame {
    uint64_t stack;
    size_t node;
  };
  struct Flow {
    std::vector<size_t> roots;
    CallStacks<Frame> stacks;
    uint64_t region = 0;  // of the current stack
    uint64_t system_calls = 0;
  };

  bool is_shown(const Node& node) const {
    if (everything_ || !some_evidence_ || switches_ <= kMostSwitches) return everything_ || node.marked;
    return node.evident;
  }

  std::string function(Place place) const { return std::string(function_of(printable(names_.place(place)))); }

  size_t new_root(Flow& flow, std::string title) {
    nodes_.push_back({.title = std::move(title)});
    flow.roots.push_back(nodes_.size() - 1);
    flow.stacks.clear();
    return flow.roots.back();
  }

  size_t current(Flow& flow) {
    if (flow.roots.empty()) new_root(flow, "");
    const std::vector<Frame>& frames = flow.stacks.at(flow.region);
    return frames.empty() ? flow.roots.back() : frames.back().node;
  }

  void mark(Flow& flow, std::string text, bool evidence) {
    const size_t at = current(flow);
    if (!nodes_[at].items.empty() && nodes_[at].items.back().mark == text) return;
    nodes_[at].items.push_back({.mark = std::move(text), .evidence = evidence});
    some_evidence_ |= evidence;
    switches_ += !evidence;
    for (size_t up = at;; up = nodes_[up].parent) {
      nodes_[up].marked = true;
      nodes_[up].evident |= evidence;
      if (nodes_[up].parent == 0) break;
    }
  }

  void transfer(Flow& flow, const Access& access) {
    const uint64_t stack = access.value;
    const bool calls = access.op() == OpKind::Call;
    // A return leaves the pointer above the slot of the return address.
    const uint64_t region = kernel_stack_of(calls ? stack : stack - 8);
    const size_t caller = current(flow);
    const bool known = flow.stacks.find(region) != nullptr;
    std::vector<Frame>& frames = flow.stacks.at(region);
    flow.region = region;
    if (!calls) return flow.stacks.end_after_return(frames, stack);
    flow.stacks.end_before_call(frames, stack);
    // A separate stack, such as an interrupt's, is one call deeper.
    const size_t parent = known ? current(flow) : caller;
    some_calls_ = true;
    nodes_.push_back({.function = Place{access.address().raw}, .parent = parent});
    nodes_[parent].items.push_back({.call = nodes_.size() - 1});
    frames.push_back({stack, nodes_.size() - 1});
  }

  void follow(size_t number) {
    const KernelRun& run = trace_.runs[number];
    Flow& flow = flows_[run.agent];
    Place last;
    for (size_t i = run.first; i < run.end; ++i) {
      const KernelOperation& operation = trace_.operations[i];
      if (operation.access != nullptr) {
        last = operation.access->pc();
        if (!is_memory(operation.access->op()))
          transfer(flow, *operation.access);
        else if (evidence_[i])
          mark(flow, evidence_text(operation), true);
        continue;
      }
      if (operation.is_event(OpKind::SyscallEnter))
        new_root(flow, printable(names_.system_call(run.agent, flow.system_calls++, operation.event->value)));
      if (operation.is_event(OpKind::IrqEnter)) {
        new_root(flow, fmt::format("interrupts {}", place_and_line(names_, operation.event->pc)));
        flow.region = 0;
      }
      if (evidence_[i]) mark(flow, evidence_text(operation), true);
    }
    if (number + 1 < trace_.runs.size() && unforced(leaving_[number]))
      mark(flow,
           fmt::format("{} {}{}{}", glyphs_.right, printable(names_.agent(trace_.runs[number + 1].agent)),
                       last.raw == 0 ? "" : " after ", last.raw == 0 ? "" : place_and_line(names_, last)),
           false);
  }

  std::string evidence_text(const KernelOperation& operation) const {
    const Place pc = operation.access != nullptr ? operation.access->pc() : operation.event->pc;
    const auto found = texts_.find({operation.agent, pc});
    return fmt::format("{}: {}", place_and_line(names_, pc),
                       found == texts_.end() ? "" : printable(found->second));
  }

  void add_ends() {
    const auto* deadlock = std::get_if<Deadlocked>(&outcome_);
    if (deadlock == nullptr) return;
    for (const Deadlocked::Waiting& waiting : deadlock->waiting) {
      const auto flow = flows_.find(waiting.agent);
      if (flow == flows_.end()) continue;
      mark(flow->second,
           fmt::format("waits{}{}",
                       waiting.object.raw == 0 ? "" : " for " + printable(names_.object(waiting.object)),
                       waiting.pc.raw == 0 ? "" : ", called at " + place_and_line(names_, waiting.pc)),
           true);
    }
  }

  std::string root_text(AgentId agent, size_t root) const {
    const std::string who = printable(names_.agent(agent));
    return nodes_[root].title.empty() ? who : fmt::format("{}: {}", who, nodes_[root].title);
  }

  // Prints calls that only lead to one marked call in one line.
  void print(size_t number, size_t indent) {
    const Node& node = nodes_[number];
    std::vector<std::string> left_out;
    const auto flush = [&] {
      if (left_out.empty()) return;
      const size_t shown = std::min(left_out.size(), kNamed);
      std::string text = fmt::format(
          "{}", fmt::join(left_out.begin(), left_out.begin() + static_cast<ptrdiff_t>(shown), ", "));
      if (shown < left_out.size()) text += fmt::format(" and {} more", left_out.size() - shown);
      lines_.push_back({indent, fmt::format("{} {}", glyphs_.ellipsis, text), {}, false});
      left_out.clear();
    };
    for (const Node::Item& item : node.items) {
      if (item.call == 0 && !item.evidence && !everything_ && some_evidence_ && switches_ > kMostSwitches) {
        continue;
      } else if (item.call == 0) {
        flush();
        lines_.push_back({indent, item.mark, {}, item.evidence});
      } else if (!is_shown(nodes_[item.call])) {
        std::string name = function(nodes_[item.call].function);
        if (std::ranges::find(left_out, name) == left_out.end()) left_out.push_back(std::move(name));
      } else {
        flush();
        print_call(item.call, indent);
      }
    }
    flush();
  }

  void print_call(size_t number, size_t indent) {
    std::string text = function(nodes_[number].function);
    for (size_t length = 1; !everything_ && length < kChain; ++length) {
      const size_t only = only_marked_call(number);
      if (only == 0) break;
      number = only;
      text += fmt::format(" {} {}", glyphs_.right, function(nodes_[number].function));
    }
    lines_.push_back({indent, std::move(text), {}, false});
    print(number, indent + 1);
  }

  // Returns the only call to show below this one; 0 if there is more to show.
  size_t only_marked_call(size_t number) const {
    size_t found = 0;
    for (const Node::Item& item : nodes_[number].items) {
      if (item.call == 0) return 0;
      if (!is_shown(nodes_[item.call])) continue;
      if (found != 0) return 0;
      found = item.call;
    }
    return found;
  }

  // Removes the lines farthest from evidence first. Headings stay.
  void cut() {
    std::vector<size_t> distance(lines_.size(), lines_.size());
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (!lines_[i].evidence) continue;
      for (size_t k = 0; k < lines_.size(); ++k)
        distance[k] = std::min(distance[k], k < i ? i - k : (k - i) * 2);
    }
    std::vector<size_t> sorted = distance;
    std::ranges::nth_element(sorted, sorted.begin() + kMostLines);
    const size_t most = sorted[kMostLines];
    std::vector<CallLine> kept;
    size_t left_out = 0;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const bool keep = lines_[i].agent || distance[i] < most || (most == lines_.size() && i < kMostLines);
      left_out += !keep;
      if ((keep || i + 1 == lines_.size()) && left_out > 0) {
        kept.push_back({1, fmt::format("{} {}", glyphs_.ellipsis, plural(left_out, "more line")), {}, false});
        left_out = 0;
      }
      if (keep) kept.push_back(std::move(lines_[i]));
    }
    lines_ = std::move(kept);
  }

  const KernelTrace& trace_;
  const Outcome& outcome_;
  const Names& names_;
  const bool everything_;
  const Glyphs& glyphs_;
  const std::vector<bool> evidence_;
  std::vector<Leaving> leaving_;
  std::map<std::pair<AgentId, Place>, std::string> texts_;
  std::vector<Node> nodes_;  // the first one is unused
  std::map<AgentId, Flow> flows_;
  std::vector<CallLine> lines_;
  bool some_calls_ = false, some_evidence_ = false;
  size_t switches_ = 0;  // number of marked switches
};

}  // namespace

std::vector<CallLine> kernel_calls(const KernelTrace& trace, const Interleaving& switches,
                                   const Finding& finding, const Outcome& outcome, const Names& names,
                                   TimelineDetail detail, const Glyphs& glyphs) {
  return Calls(trace, switches, finding, outcome, names, detail, glyphs).make();
}

}  // namespace slalom
