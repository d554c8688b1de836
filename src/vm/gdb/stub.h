// GdbStub: answers packets of gdb's remote protocol about a Debugger. CPUs are threads, numbered from 1.
//
// It maps one packet to its answers and knows no sockets (see gdb/server.h), so tests can call it directly.
// Unknown packets get the empty answer, as the protocol requires; malformed ones get an error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/gdb/debugger.h"
#include "vm/gdb/packet.h"
#include "vm/gdb/register_map.h"

namespace slalom::vm {

class GdbStub {
 public:
  // `first`: the reason why the machine stands where the first client finds it.
  explicit GdbStub(Debugger& debugger, const DebugStop& first = {}) : debugger_(debugger), last_(first) {}

  // Takes and returns bodies of packets. A packet that lets the machine run is answered when it has stopped.
  std::vector<std::string> answer(std::string_view packet);

  void new_client();  // forgets what was negotiated with the previous client
  bool detached() const { return end_ == End::Detached; }
  bool killed() const { return end_ == End::Killed; }
  bool wants_acknowledgements() const { return acknowledges_; }

 private:
  // Error answers. gdb shows the text behind "E.", but ignores the meaning of numbers; these are EFAULT and
  // EINVAL.
  static constexpr std::string_view kNoMemory = "E0e";
  static constexpr std::string_view kMalformed = "E16";
  static std::string error_text(std::string_view text) { return "E." + std::string(text); }

  enum class End : uint8_t { No, Detached, Killed };
  enum class Resume : uint8_t { Step, Continue, StepBack, ContinueBack };

  std::string one_answer(std::string_view packet);
  std::string query(FieldReader in);
  std::string set_option(FieldReader in);
  std::string verbose(FieldReader in);  // packets that begin with v
  std::string supported(FieldReader in);
  std::string transfer_features(FieldReader in);
  std::string select_thread(FieldReader in);
  std::string thread_alive(FieldReader in);
  std::string thread_information(FieldReader in);
  std::string resume(Resume how, std::optional<unsigned> cpu);
  std::string resume_threads(FieldReader in);
  std::string stop_reply(const DebugStop& stop);
  std::string read_registers();
  std::string write_registers(FieldReader in);
  std::string read_register(FieldReader in);
  std::string write_register(FieldReader in);
  std::string read_memory(FieldReader in);
  std::string write_memory(FieldReader in, bool binary);
  std::string set_point(FieldReader in, bool insert);
  std::string monitor(std::string_view hex);
  std::optional<unsigned> cpu_of_thread(uint64_t thread);
  std::string changed();

  Debugger& debugger_;
  DebugStop last_;
  RegisterMap registers_;
  unsigned cpu_ = 0;      // selected for registers and memory
  unsigned run_cpu_ = 0;  // selected for steps
  bool reports_breaks_ = false;
  bool reports_hardware_breaks_ = false;
  bool acknowledges_ = true;
  End end_ = End::No;
  std::set<uint64_t> hardware_breaks_;  // of the debugger's breakpoints
  std::vector<std::string> before_;     // text for the user, sent before the answer
};

}  // namespace slalom::vm
