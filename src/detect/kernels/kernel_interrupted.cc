#include "detect/kernels/kernel_interrupted.h"

#include <algorithm>

namespace slalom {
namespace {

constexpr size_t kMostUpdates = 256;  // in one execution

}  // namespace

void KernelInterruptedState::clear() {
  context.clear();
  cpus.clear();
  index.clear();
  cells.clear();
  updates.clear();
}

void KernelInterruptedDetector::on_event(const Event& event) {
  state_.context.on_event(event);
  if (event.op == OpKind::IrqEnter && event.agent)
    state_.cpus[event.agent.raw] = static_cast<uint32_t>(event.object.raw) + 1;
}

void KernelInterruptedDetector::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  if (!header.agent) return;
  Moment now{.agent = header.agent, .where = state_.context.where(header.agent)};
  for (const Access& access : accesses) {
    if (!is_memory(access.op())) {
      now.where = state_.context.on_transfer(header.agent, access);
      continue;
    }
    now.pc = access.pc();
    now.step = Step{header.first_step.raw + access.retired};
    now.address = access.address();
    now.value = access.value;
    for (uint64_t at = access.physical, end = at + access.size; at < end;) {
      const uint64_t next = std::min(end, (at | 7) + 1);
      touch(at >> 3, static_cast<uint8_t>(((1u << (next - at)) - 1) << (at & 7)), access, now);
      at = next;
    }
  }
}

void KernelInterruptedDetector::touch(uint64_t key, uint8_t bytes, const Access& access, const Moment& now) {
  const uint32_t* cpu = state_.cpus.find(now.agent.raw);
  const bool interrupt = cpu != nullptr;
  // Without a read there is nothing to lose.
  uint32_t* known = state_.index.find(key);
  if (known == nullptr) {
    if (interrupt || access.wrote || access.op() == OpKind::Store) return;
    known = &state_.index[key];
    state_.cells.emplace_back();
    *known = static_cast<uint32_t>(state_.cells.size());
  }
  KernelInterruptedState::Cell& cell = state_.cells[*known - 1];
  const bool writes = access.wrote != 0 || access.op() == OpKind::Store;
  if (interrupt) {
    const bool here = cell.reader.agent == AgentId::initial(*cpu - 1);
    if (!writes || !here || (cell.read & bytes) == 0) return;
    cell.lost |= cell.read & bytes;
    cell.writer = now;
    return;
  }
  if (!writes) {
    if (cell.reader.agent != now.agent) cell.read = cell.lost = 0;
    cell.lost &= ~bytes;
    if (cell.lost == 0) cell.reader = now;
    cell.read |= bytes;
    return;
  }
  if (cell.reader.agent != now.agent) return;
  // The load of a read-modify-write instruction, just before its own write, was recorded as a read too. An
  // interrupt cannot come between the two.
  if ((cell.lost & bytes) != 0 && cell.reader.step != now.step && state_.updates.size() < kMostUpdates)
    state_.updates.push_back({cell.reader, cell.writer, now});
  cell.read &= ~bytes;
  cell.lost &= ~bytes;
}

bool KernelInterruptedDetector::of_one_piece(const Moment& read, const Moment& store) const {
  const std::string reading = function_name(names_.place(read.pc)),
                    storing = function_name(names_.place(store.pc));
  const auto calls = [&](const Moment& moment, const std::string& function) {
    return std::ranges::any_of(state_.context.functions(moment.where.path),
                               [&](Place entry) { return function_name(names_.place(entry)) == function; });
  };
  return reading == storing || calls(store, reading) || calls(read, storing);
}

void KernelInterruptedDetector::on_end(const Outcome&) {
  std::vector<std::string> told;
  for (const auto& [read, interrupt, store] : state_.updates) {
    const auto is_internal = [&](const Moment& moment) {
      return internals_.is_internal(moment.pc, state_.context.functions(moment.where.path), moment.address);
    };
    if (is_internal(read) || is_internal(interrupt) || is_internal(store) || !of_one_piece(read, store))
      continue;
    const std::string title =
        fmt::format("interrupted update: {} / {}", function_name(names_.place(store.pc)),
                    function_name(names_.place(interrupt.pc)));
    if (std::ranges::find(told, title) != told.end()) continue;
    told.push_back(title);
    Verdict verdict{
        .kind = BugKind::DataRace, .severity = Severity::Race, .title = title, .detail = {}, .evidence = {}};
    verdict.detail = fmt::format(
        "{} read {:#x} from {} at {}; an interrupt wrote {:#x} there, at {}; then {} stored {:#x}, without "
        "having "
        "read it again. What the interrupt wrote is lost: interrupts were on.",
        names_.agent(read.agent), read.value, names_.object(read.address), names_.place(read.pc),
        interrupt.value, names_.place(interrupt.pc), names_.place(store.pc), store.value);
    for (const Moment& moment : {read, interrupt, store})
      verdict.detail += fmt::format("\n{} in {}; holds {}.", names_.agent(moment.agent),
                                    state_.context.stack_text(moment.pc, moment.where.path, names_),
                                    state_.context.locks_text(moment.where.locks, names_));
    verdict.evidence = {
        {read.step, read.agent, read.pc, fmt::format("load of {}", names_.object(read.address))},
        {interrupt.step, interrupt.agent, interrupt.pc,
         fmt::format("store of {}", names_.object(interrupt.address))},
        {store.step, store.agent, store.pc, fmt::format("store of {}", names_.object(store.address))}};
    report(std::move(verdict));
  }
}

}  // namespace slalom
