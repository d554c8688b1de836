// BootTrace: the trace that `slalom boot --trace` shows and saves of a running kernel. Begins when `after`
// appears on the console, and then records everything until the end. Does not change the machine.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "trace/files/trace_stream.h"
#include "vm/guests/linux/linux_model.h"
#include "vm/guests/linux/symbol_names.h"
#include "vm/guests/linux/trace_lines.h"

namespace slalom {

struct BootTraceOptions {
  std::vector<std::string> filters;  // empty means no trace
  std::filesystem::path to;          // empty means standard error
  std::string after;                 // begin when this text has appeared on the console; empty means at once
  std::filesystem::path save;        // empty means that nothing is saved
  std::filesystem::path debug_info;  // a vmlinux with source lines; empty if none is given
};

class BootTrace final : public vm::GuestSink {
 public:
  // Fails for unknown filters, and for names that this kernel does not have.
  static Result<std::unique_ptr<BootTrace>> make(const BootTraceOptions& options, const std::string& kernel);
  ~BootTrace() override;

  // Call with new text from the console, possibly empty. Begins the trace if `after` has appeared.
  Result<void> on_console(const std::string& text, vm::Pc& pc);
  bool waits() const { return tap_ == nullptr; }
  // Call between two slices of the machine's run.
  void between(vm::Pc& pc);
  // Call when the machine has ended: ends the saved trace, if there is one.
  Result<void> end();

  void on_guest_event(const vm::Cpu& cpu, const vm::GuestEvent& event) override;
  void on_guest_accesses(const vm::Cpu& cpu, std::span<const Access> accesses, uint64_t first_step,
                         const vm::GuestTask& task) override;

 private:
  explicit BootTrace(const BootTraceOptions& options) : options_(options), names_(symbols_), lines_(names_) {}
  Result<void> parse(const std::string& filter);
  Result<void> choose();  // functions and addresses by name
  Result<void> begin(vm::Pc& pc);
  void print(const std::string& line);
  void print_callers(const std::vector<vm::ShadowStacks::Frame>& callers);
  void note_if_nameless(uint64_t address);

  const BootTraceOptions options_;
  std::string kernel_name_;
  vm::GuestKernel kernel_;
  SymbolTable symbols_;  // including modules
  vm::SymbolNames names_;
  vm::TraceLines lines_;
  vm::GuestModelOptions model_options_;
  std::vector<std::string> call_patterns_;
  std::vector<std::string> ranges_;
  bool shows_switches_ = false;
  bool nameless_ = false;  // an address was seen that lies in no module known so far
  std::string seen_;       // the last part of the console's text
  std::unique_ptr<vm::LinuxModel> model_;
  std::unique_ptr<vm::Tap> tap_;
  vm::Pc* attached_ = nullptr;
  std::ofstream file_;
  std::unique_ptr<TraceWriter> writer_;  // nullptr if nothing is saved
};

}  // namespace slalom
