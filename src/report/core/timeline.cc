#include "report/core/timeline.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace slalom {
namespace {

// Nobody reads more. A long schedule is shown by its ends and its most important operations.
constexpr size_t kMostKept = 120;
constexpr size_t kEnds = 20;        // operations shown at each end of a long schedule
constexpr size_t kMostStrong = 40;  // most important operations shown between the ends

// Why an operation is shown.
enum Reason : uint8_t {
  kEvidence = 1,
  kConstraint = 2,
  kObject = 4,     // uses an object of the evidence, or one on which agents conflict
  kSaid = 8,       // a note or a failure
  kUnforced = 16,  // next to a preemption
  kForced = 32,    // next to another switch
  kLife = 64,      // spawn, join, exit
};
constexpr uint8_t kStrong = kEvidence | kConstraint;
// Reasons that give an agent a column.
constexpr uint8_t kRelevant = kStrong | kObject | kSaid | kUnforced;

bool is_life(OpKind kind) {
  return kind == OpKind::Spawn || kind == OpKind::Join || kind == OpKind::Exit;
}

class TimelineMaker {
 public:
  TimelineMaker(const Interleaving& all, const Finding& finding, const Outcome& outcome, const Names& names,
                TimelineDetail detail, const Glyphs& glyphs)
      : all_(all),
        finding_(finding),
        outcome_(outcome),
        names_(names),
        detail_(detail),
        glyphs_(glyphs),
        reasons_(all.operations.size(), 0) {}

  Timeline make() {
    mark_evidence();
    mark_constraints();
    mark_objects();
    mark_rest();
    choose_agents();
    choose_operations();
    add_rows();
    add_end();
    return std::move(result_);
  }

 private:
  void mark_evidence() {
    for (const Evidence& evidence : finding_.verdict.evidence) {
      std::vector<size_t> there, exact;
      for (size_t i = 0; i < all_.operations.size(); ++i) {
        const Operation& operation = all_.operations[i];
        const bool matters = operation.ops || operation.kind == OpKind::Fail;
        if (!matters || operation.agent != evidence.agent || operation.step != evidence.step) continue;
        there.push_back(i);
        if (operation.pc == evidence.pc) exact.push_back(i);
      }
      for (size_t i : there) reasons_[i] |= kObject;
      for (size_t i : exact.empty() ? there : exact) reasons_[i] |= kEvidence;
    }
  }

  void mark_constraints() {
    std::set<std::pair<AgentId, uint64_t>> points;
    for (const OrderConstraint& constraint : finding_.constraints) {
      points.insert({constraint.before.agent, constraint.before.ops});
      points.insert({constraint.after.agent, constraint.after.ops});
    }
    for (size_t i = 0; i < all_.operations.size(); ++i) {
      const Operation& operation = all_.operations[i];
      if (operation.ops && points.contains({operation.agent, *operation.ops})) reasons_[i] |= kConstraint;
    }
  }

  void mark_objects() {
    struct Users {
      AgentId first;
      bool several = false, written = false;
    };
    std::map<ObjectId, Users> users;
    std::set<ObjectId> objects;
    for (size_t i = 0; i < all_.operations.size(); ++i) {
      const Operation& operation = all_.operations[i];
      if (is_life(operation.kind)) continue;
      for (const ObjectUse& use : operation.uses) {
        if (reasons_[i] & (kEvidence | kObject)) objects.insert(use.object);
        Users& user = users.try_emplace(use.object, Users{operation.agent}).first->second;
        user.several |= user.first != operation.agent;
        user.written |= use.writes;
        if (user.several && user.written) objects.insert(use.object);
      }
    }
    for (size_t i = 0; i < all_.operations.size(); ++i)
      for (const ObjectUse& use : all_.operations[i].uses)
        if (!is_life(all_.operations[i].kind) && objects.contains(use.object)) reasons_[i] |= kObject;
  }

  void mark_rest() {
    for (size_t i = 0; i < all_.operations.size(); ++i) {
      const OpKind kind = all_.operations[i].kind;
      if (kind == OpKind::Fail || kind == OpKind::Note) reasons_[i] |= kSaid;
      if (is_life(kind)) reasons_[i] |= kLife;
    }
    for (size_t i = all_.operations.size(); i-- > 0;) {
      if (!all_.operations[i].ops) continue;
      reasons_[i] |= kForced;
      break;
    }
    for (const AgentSwitch& change : all_.switches) {
      const uint8_t reason = unforced(change.leaving) ? kUnforced : kForced;
      reasons_[change.at] |= reason;
      for (size_t i = change.at; i-- > 0;) {
        if (!all_.operations[i].ops) continue;
        reasons_[i] |= reason;
        break;
      }
    }
  }

  void choose_agents() {
    std::map<AgentId, uint8_t> why;
    std::map<AgentId, uint64_t> count;
    for (size_t i = 0; i < all_.operations.size(); ++i) {
      why[all_.operations[i].agent] |= reasons_[i];
      count[all_.operations[i].agent] += all_.operations[i].ops ? 1 : 0;
    }
    if (const auto* deadlock = std::get_if<Deadlocked>(&outcome_))
      for (const auto& waiting : deadlock->waiting) why[waiting.agent] |= kEvidence;
    const bool any = std::any_of(all_.agents.begin(), all_.agents.end(),
                                 [&](AgentId agent) { return why[agent] & kRelevant; });
    for (AgentId agent : all_.agents) {
      if (detail_ == TimelineDetail::Everything || !any || (why[agent] & kRelevant)) {
        result_.agents.push_back(agent);
      } else {
        result_.dropped.push_back({agent, count[agent]});
      }
    }
  }

  bool has_column(AgentId agent) const {
    return !agent || std::binary_search(result_.agents.begin(), result_.agents.end(), agent);
  }

  void choose_operations() {
    keep_.assign(all_.operations.size(), detail_ == TimelineDetail::Everything);
    if (detail_ == TimelineDetail::Everything) return;
    std::vector<size_t> kept;
    for (size_t i = 0; i < keep_.size(); ++i)
      if (reasons_[i] != 0 && has_column(all_.operations[i].agent)) kept.push_back(i);
    size_t strong = 0;
    for (size_t k = 0; k < kept.size(); ++k) {
      bool keep = kept.size() <= kMostKept || k < kEnds || k + kEnds >= kept.size();
      if (!keep && (reasons_[kept[k]] & kStrong) && strong < kMostStrong) {
        keep = true;
        ++strong;
      }
      keep_[kept[k]] = keep;
    }
  }

  void add_rows() {
    auto change = all_.switches.begin();
    bool last_shown = false;  // of the previous operation
    for (size_t i = 0; i < all_.operations.size(); ++i) {
      const Operation& operation = all_.operations[i];
      const AgentSwitch* here = change != all_.switches.end() && change->at == i ? &*change++ : nullptr;
      if (!has_column(operation.agent)) {
        last_shown = false;
        continue;
      }
      if (!keep_[i]) {
        if (here != nullptr) ++folded_.switches;
        folded_.operations.push_back(i);
        last_shown = false;
        continue;
      }
      flush_fold();
      if (here != nullptr && last_shown) add_switch(*here);
      add_cell(i);
      last_shown = true;
    }
    flush_fold();
    flush_repeats();
  }

  void add_switch(const AgentSwitch& change) {
    TimelineRow row;
    row.agent = change.from;
    row.to = change.to;
    switch (change.leaving) {
      case Leaving::Preempted:
        row.text = "preempted";
        break;
      case Leaving::Interrupted:
        row.text = "interrupted";
        break;
      case Leaving::Unknown:
        row.text = "switch";
        break;
      case Leaving::Blocked:
        if (change.blocked_on.empty()) return;
        row.what = TimelineRow::What::Pause;
        row.text = change.blocked_on;
        row.note = "has to wait";
        return push(std::move(row));
      default:
        return;
    }
    row.what = TimelineRow::What::Switch;
    push(std::move(row));
  }

  void add_cell(size_t i) {
    const Operation& operation = all_.operations[i];
    TimelineRow row;
    row.agent = operation.agent;
    if (operation.ops) row.step = operation.step;
    row.text = operation.text;
    row.note = operation.note;
    row.failed = operation.kind == OpKind::Fail;
    if (!operation.agent) {
      row.what = TimelineRow::What::Ending;
      row.text = fmt::format("after the end: {}", operation.note);
      row.note.clear();
    }
    row.mark = reasons_[i] & kEvidence     ? TimelineRow::Mark::Evidence
               : reasons_[i] & kConstraint ? TimelineRow::Mark::Point
                                           : TimelineRow::Mark::None;
    if (merge_end(operation)) return;
    if (!merge(operation, row)) push(std::move(row));
    merged_.push_back(&operation);
  }

  // Merges the consecutive accesses of one source line into one row: "x = x + 1   read 0, wrote 1".
  bool merge(const Operation& operation, const TimelineRow& row) {
    if (detail_ == TimelineDetail::Everything || merged_.empty() || !is_memory(operation.kind)) return false;
    const Operation& first = *merged_.front();
    TimelineRow& last = result_.rows.back();
    if (last.what != TimelineRow::What::Cell || !is_memory(first.kind) || first.agent != operation.agent ||
        first.line != operation.line || first.text != operation.text)
      return false;
    for (const Operation* before : merged_)
      if (before->kind == operation.kind && before->uses.front().object == operation.uses.front().object)
        return false;  // the line runs again
    last.note += ", " + row.note;
    last.mark = std::max(last.mark, row.mark);
    return true;
  }

  // Marks the last operation of an agent as the last.
  bool merge_end(const Operation& operation) {
    const bool ends = operation.kind == OpKind::Exit || operation.kind == OpKind::IrqExit;
    if (detail_ == TimelineDetail::Everything || !ends || result_.rows.empty()) return false;
    TimelineRow& last = result_.rows.back();
    if (last.what != TimelineRow::What::Cell || last.agent != operation.agent) return false;
    flush_repeats();
    TimelineRow& kept = result_.rows.back();
    kept.note += kept.note.empty() ? "ends" : ", ends";
    merged_.clear();
    return true;
  }

  void push(TimelineRow row) {
    flush_repeats();
    merged_.clear();
    result_.rows.push_back(std::move(row));
  }

  // A spinning agent repeats itself. Show one repetition.
  void flush_repeats() {
    auto& rows = result_.rows;
    if (detail_ == TimelineDetail::Everything || rows.empty()) return;
    const TimelineRow& last = rows.back();
    if (rows.size() >= 2) {
      const TimelineRow& before = rows[rows.size() - 2];
      const bool same = before.what == TimelineRow::What::Cell && last.what == before.what &&
                        before.agent == last.agent && before.text == last.text && repeated_ == last.note &&
                        before.mark == last.mark && last.mark == TimelineRow::Mark::None && !last.failed;
      if (same) {
        rows.pop_back();
        ++times_;
        rows.back().note =
            fmt::format("{}{}{}{}", repeated_, repeated_.empty() ? "" : "  ", glyphs_.times, times_);
        return;
      }
    }
    repeated_ = last.note;
    times_ = 1;
  }

  struct Folded {
    std::vector<size_t> operations;
    uint64_t switches = 0;
  };

  void flush_fold() {
    const Folded folded = std::exchange(folded_, {});
    if (folded.operations.empty()) return;
    if (folded.operations.size() == 1) return add_cell(folded.operations.front());
    std::set<AgentId> agents;
    for (size_t i : folded.operations) agents.insert(all_.operations[i].agent);
    TimelineRow row;
    row.text = fmt::format("{} {}", glyphs_.ellipsis, plural(folded.operations.size(), "operation"));
    if (agents.size() == 1) {
      row.what = TimelineRow::What::Pause;
      row.agent = *agents.begin();
    } else {
      row.what = TimelineRow::What::Whole;
      row.text += fmt::format(" of {}, {}", plural(agents.size(), "agent"),
                              plural(folded.switches, "switch", "switches"));
    }
    push(std::move(row));
  }

  void add_end() {
    const auto ending = [&](std::string text) {
      TimelineRow row;
      row.what = TimelineRow::What::Ending;
      row.failed = true;
      row.text = std::move(text);
      result_.rows.push_back(std::move(row));
    };
    if (std::holds_alternative<Exited>(outcome_)) return;
    if (const auto* deadlock = std::get_if<Deadlocked>(&outcome_)) {
      for (const auto& waiting : deadlock->waiting) add_waiting(waiting);
      return ending("nothing can run any more");
    }
    const bool said = !all_.operations.empty() && all_.operations.back().kind == OpKind::Fail;
    if (std::holds_alternative<Faulted>(outcome_) && said) return;
    ending(outcome_text(outcome_, names_));
  }

  void add_waiting(const Deadlocked::Waiting& waiting) {
    TimelineRow row;
    row.agent = waiting.agent;
    row.failed = true;
    row.text = describe(waiting.op, waiting.object, {}, names_);
    std::vector<std::string> holders;
    for (AgentId agent : waiting.held_by)
      holders.push_back(agent == waiting.agent ? "itself" : printable(names_.agent(agent)));
    // The text of a join names the agent that it waits for.
    const bool told = holders.empty() || waiting.op == OpKind::Join;
    row.note = told ? "blocked for ever" : fmt::format("blocked by {}", fmt::join(holders, ", "));
    for (const Evidence& evidence : finding_.verdict.evidence)
      if (evidence.agent == waiting.agent && evidence.pc == waiting.pc)
        row.mark = TimelineRow::Mark::Evidence;
    // The row may exist already: a wait for a condition, or at a barrier, begins with an operation.
    if (!result_.rows.empty()) {
      TimelineRow& last = result_.rows.back();
      if (last.what == TimelineRow::What::Cell && last.agent == row.agent && last.text == row.text) {
        last.note += (last.note.empty() ? "" : ", ") + row.note;
        last.failed = true;
        return;
      }
    }
    result_.rows.push_back(std::move(row));
  }

  const Interleaving& all_;
  const Finding& finding_;
  const Outcome& outcome_;
  const Names& names_;
  const TimelineDetail detail_;
  const Glyphs& glyphs_;
  std::vector<uint8_t> reasons_;
  std::vector<bool> keep_;
  Folded folded_;
  std::vector<const Operation*> merged_;  // the operations in the last row
  std::string repeated_;                  // the note of the last row, before its repetitions were counted
  uint64_t times_ = 1;
  Timeline result_;
};

}  // namespace

Timeline make_timeline(const Interleaving& all, const Finding& finding, const Outcome& outcome,
                       const Names& names, TimelineDetail detail, const Glyphs& glyphs) {
  return TimelineMaker(all, finding, outcome, names, detail, glyphs).make();
}

}  // namespace slalom
