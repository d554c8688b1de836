#include "symbols/dwarf/stacks.h"

#include <elfutils/libdwfl.h>

#include <optional>

namespace slalom {
namespace {

constexpr size_t kMostFrames = 256;
constexpr unsigned kBaseRegister = 3, kStackPointer = 7;  // as DWARF counts them
constexpr unsigned kKept[] = {3, 6, 7, 12, 13, 14, 15};   // rbx, rbp, rsp, r12 and so on

struct EndStackDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};

std::optional<uint64_t> frame_register(Dwfl_Frame* frame, unsigned number) {
  Dwarf_Word value = 0;
  return dwfl_frame_reg(frame, number, &value) == 0 ? std::optional(uint64_t{value}) : std::nullopt;
}

int collect_frame(Dwfl_Frame* frame, void* argument) {
  auto& found = *static_cast<std::vector<StackFrame>*>(argument);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  StackFrame& here = found.emplace_back();
  here.pc = pc - (is_activation ? 0 : 1);
  for (const unsigned number : kKept) here.registers[number] = frame_register(frame, number);
  // libdwfl forgets rbx if a function has no rule for it. Such a function does not change rbx.
  if (found.size() > 1 && !here.registers[kBaseRegister])
    here.registers[kBaseRegister] = found[found.size() - 2].registers[kBaseRegister];
  return found.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// The program's own files hold all that unwinding needs. A search for debug files may ask a server.
int find_no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                       char**) {
  return -1;
}

}  // namespace

struct Stacks::State {
  Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                              .find_debuginfo = find_no_debug_file,
                              .section_address = dwfl_offline_section_address,
                              .debuginfo_path = nullptr};
  std::unique_ptr<Dwfl, EndStackDwfl> dwfl;
};

Stacks::Stacks(pid_t process) : state_(std::make_unique<State>()) {
  std::unique_ptr<Dwfl, EndStackDwfl> dwfl(dwfl_begin(&state_->callbacks));
  if (!dwfl) return;
  if (dwfl_linux_proc_report(dwfl.get(), process) != 0 || dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0)
    return;
  if (dwfl_linux_proc_attach(dwfl.get(), process, false) == 0) state_->dwfl = std::move(dwfl);
}

Stacks::~Stacks() = default;

std::vector<StackFrame> Stacks::frames(pid_t thread) {
  std::vector<StackFrame> all;
  if (!state_->dwfl) return all;
  // Fails at the end of every stack, where no unwind rules exist.
  dwfl_getthread_frames(state_->dwfl.get(), thread, collect_frame, &all);
  // The stack pointer in the frame of its caller is the end of a frame.
  size_t known = 0;
  for (; known + 1 < all.size() && all[known + 1].registers[kStackPointer]; ++known)
    all[known].cfa = *all[known + 1].registers[kStackPointer];
  all.resize(known);
  return all;
}

}  // namespace slalom
