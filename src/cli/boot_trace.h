// BootTrace: what `slalom boot --trace` shows of a running kernel, and saves.
//
// Begins when it is told to, and then sees everything up to its end. Changes nothing of the machine.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "trace/trace_log.h"
#include "vm/guests/linux/linux_model.h"
#include "vm/guests/linux/trace_lines.h"

namespace slalom {

struct BootTraceOptions {
  std::vector<std::string> filters;  // empty: no trace
  std::filesystem::path to;          // empty: standard error
  std::string after;                 // begin when this has appeared on the console; empty: at once
  std::filesystem::path save;        // empty: nothing is saved
  std::filesystem::path debug_info;  // a vmlinux that knows source lines; empty: none is given
};

class BootTrace final : public vm::GuestSink {
 public:
  // Refuses filters that are not known, and names that this kernel does not have.
  static Result<std::unique_ptr<BootTrace>> make(const BootTraceOptions& options, const std::string& kernel);
  ~BootTrace() override;

  // Something appeared on the console, possibly nothing: begins if it is time to.
  Result<void> on_console(const std::string& text, vm::Pc& pc);
  bool waits() const { return tap_ == nullptr; }
  // The machine has run for a while.
  void between(vm::Pc& pc);
  // The machine has ended: saves what is to be saved.
  Result<void> end(vm::Pc& pc);

  void on_guest_event(const vm::Cpu& cpu, const vm::GuestEvent& event) override;
  void on_guest_accesses(const vm::Cpu& cpu, std::span<const Access> accesses, uint64_t first_step,
                         const vm::GuestTask& task) override;

 private:
  explicit BootTrace(const BootTraceOptions& options) : options_(options), lines_(symbols_) {}
  Result<void> parse(const std::string& filter);
  Result<void> choose();  // functions and addresses by name
  Result<void> begin(vm::Pc& pc);
  void print(const std::string& line);
  void print_callers(const std::vector<vm::ShadowStacks::Frame>& callers);
  void note_if_nameless(uint64_t address);

  const BootTraceOptions options_;
  vm::GuestKernel kernel_;
  SymbolTable symbols_;  // with modules
  vm::TraceLines lines_;
  vm::GuestModelOptions model_options_;
  std::vector<std::string> call_patterns_;
  std::vector<std::string> ranges_;
  bool shows_switches_ = false;
  bool nameless_ = false;  // an address that no module known so far has
  bool too_long_ = false;
  std::string seen_;  // the end of the console's text
  std::unique_ptr<vm::LinuxModel> model_;
  std::unique_ptr<vm::Tap> tap_;
  vm::Pc* attached_ = nullptr;
  std::ofstream file_;
  TraceLog log_;
};

}  // namespace slalom
