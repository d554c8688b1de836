// slalom boot: runs a kernel in the virtual machine, with its console on the terminal.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/core/command.h"
#include "cli/core/console.h"
#include "cli/kernel/boot_trace.h"
#include "finding/finding_json.h"
#include "vm/boot/boot.h"
#include "vm/cpu/observe/backtrace.h"
#include "vm/gdb/server.h"
#include "vm/replay/natural_run.h"
#include "vm/snapshot/snapshot_file.h"

namespace slalom {
namespace {

struct BootArguments {
  vm::BootOptions boot;
  std::string memory = "256M";
  std::vector<std::string> files;
  std::filesystem::path load;
  std::filesystem::path save;
  uint64_t save_at = 0;  // 0 means at the end of the run
  uint64_t hash_every = 0;
  uint64_t limit = 0;
  std::optional<uint16_t> gdb;  // the port; 0 means any free one
  BootTraceOptions trace;
  bool screen = false;
  bool json = false;
};

// "512M", "2G", or a number of bytes.
Result<uint64_t> parse_memory(const std::string& text) {
  size_t used = 0;
  uint64_t number = 0;
  try {
    number = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const unsigned shift = unit == "K" || unit == "k"   ? 10
                         : unit == "M" || unit == "m" ? 20
                         : unit == "G" || unit == "g" ? 30
                                                      : 0;
  const bool valid = used > 0 && text[0] != '-' && (shift != 0 || unit.empty());
  if (!valid || number > (uint64_t{1} << 40))
    return error("--memory is a size as 256M or 2G, not \"{}\"", text);
  const uint64_t bytes = number << shift;
  if (bytes < (uint64_t{64} << 20) || bytes > (uint64_t{4} << 30))
    return error("--memory is 64M to 4G, not {}", text);
  if (bytes % (uint64_t{1} << 20) != 0) return error("--memory is in whole megabytes, not {}", text);
  return bytes;
}

Result<vm::ExtraFile> parse_file(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size() || text[colon + 1] != '/')
    return error("--file is HOST:GUEST with an absolute path in the guest, as tool:/bin/tool, not \"{}\"",
                 text);
  return vm::ExtraFile{.host = text.substr(0, colon), .guest = text.substr(colon + 1)};
}

std::string_view stop_name(vm::PcStop stop) {
  switch (stop) {
    case vm::PcStop::Budget:
      return "limit";
    case vm::PcStop::PowerOff:
      return "power-off";
    case vm::PcStop::Reset:
      return "reset";
    case vm::PcStop::Shutdown:
      return "triple fault";
    case vm::PcStop::Exit:
      return "exit";
    case vm::PcStop::Idle:
      return "idle";
    case vm::PcStop::Unknown:
      return "not implemented";
    case vm::PcStop::Place:
    case vm::PcStop::Access:
    case vm::PcStop::Halted:
    case vm::PcStop::Paused:
    case vm::PcStop::Event:
    case vm::PcStop::Hypercall:
    case vm::PcStop::Window:
      return "stopped";
  }
  return "";
}

std::string_view stop_sentence(vm::PcStop stop) {
  switch (stop) {
    case vm::PcStop::Budget:
      return "stopped by you";
    case vm::PcStop::PowerOff:
      return "the guest switched itself off";
    case vm::PcStop::Reset:
      return "the guest asked to be restarted";
    case vm::PcStop::Shutdown:
      return "a CPU gave up after a triple fault";
    case vm::PcStop::Exit:
      return "the guest ended";
    case vm::PcStop::Idle:
      return "every CPU waits, and nothing is left that could wake one";
    case vm::PcStop::Unknown:
      return "the guest needs something that slalom does not have";
    case vm::PcStop::Place:
    case vm::PcStop::Access:
    case vm::PcStop::Halted:
    case vm::PcStop::Paused:
    case vm::PcStop::Event:
    case vm::PcStop::Hypercall:
    case vm::PcStop::Window:
      return "stopped where it was told to";
  }
  return "";
}

std::string grouped(uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

// The faults that a CPU could not handle when it gave up, in the order in which they came.
nlohmann::ordered_json faults_json(const vm::Cpu& cpu) {
  nlohmann::ordered_json faults = nlohmann::ordered_json::array();
  for (const vm::RaisedFault& raised : cpu.last_faults) {
    nlohmann::ordered_json one = {{"exception", vm::exception_name(raised.fault.vector)},
                                  {"vector", raised.fault.vector}};
    if (raised.fault.has_code) one["error_code"] = raised.fault.code;
    one["rip"] = fmt::format("{:#x}", raised.rip);
    one["cr2"] = fmt::format("{:#x}", raised.cr2);
    faults.push_back(std::move(one));
  }
  return faults;
}

struct HashAt {
  uint64_t instructions;
  uint64_t hash;
};

class BootSession {
 public:
  BootSession(const BootArguments& arguments, vm::Booted machine)
      : arguments_(arguments),
        machine_(std::move(machine)),
        pc_(*machine_.pc),
        run_(pc_),
        console_(!arguments.json) {}

  Result<Exit> run() {
    const auto start = std::chrono::steady_clock::now();
    vm::PcStop stop = vm::PcStop::Budget;
    bool goes_on = true;
    if (arguments_.gdb) {
      TRY_ASSIGN(goes_on, debug(*arguments_.gdb));
    }
    if (!arguments_.trace.filters.empty()) {
      TRY_ASSIGN(trace_, BootTrace::make(arguments_.trace, machine_.kernel));
      TRY(trace_->on_console("", pc_));
    }
    while (goes_on && stop == vm::PcStop::Budget && !interrupted() && !console_.ended() && !limit_reached()) {
      const uint64_t time = pc_.time(), executed = pc_.executed();
      stop = run_.forward(slice());
      const std::string printed = show_output();
      if (trace_ != nullptr) {
        trace_->between(pc_);
        TRY(trace_->on_console(printed, pc_));
      }
      if (arguments_.hash_every != 0 && pc_.executed() % arguments_.hash_every == 0)
        hashes_.push_back({pc_.executed(), pc_.state_hash()});
      if (save_is_due()) TRY(save());
      // The guest is mostly idle if virtual time advanced much more than instructions. Then there is time to
      // wait for input.
      const bool idle = pc_.time() - time > 16 * vm::kNanosecondsPerInstruction * (pc_.executed() - executed);
      run_.type(console_.input(idle && stop == vm::PcStop::Budget));
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    console_.restore();
    console_.end_output();
    if (trace_ != nullptr) TRY(trace_->end());
    if (!arguments_.save.empty() && !saved_) TRY(save_at_the_end(stop));
    return arguments_.json ? report_json(stop) : report(stop, seconds);
  }

 private:
  // Gives the machine to gdb until gdb detaches. Returns false if gdb or the user has ended the session.
  Result<bool> debug(uint16_t port) {
    TRY_ASSIGN(vm::GdbServer server, vm::GdbServer::listen(port));
    std::cerr << fmt::format("waiting for gdb: target remote 127.0.0.1:{}\n", server.port());
    std::string typed;  // input is held back while gdb goes through instructions executed before
    const auto ended = [&] {
      show_output();
      typed += console_.input(false);
      return interrupted() || console_.ended();
    };
    const auto between = [&] {
      const bool stops = ended() || server.stop_requested();
      if (run_.at_furthest()) run_.type(std::exchange(typed, {}));
      return stops;
    };
    vm::Debugger debugger(run_, {.between = between});
    vm::GdbStub stub(debugger);
    server.serve(stub, ended);
    return stub.detached();
  }

  bool limit_reached() const { return arguments_.limit != 0 && pc_.executed() >= arguments_.limit; }

  // Instructions to the next point where there is something to do. Results do not depend on it.
  uint64_t slice() const {
    const uint64_t done = pc_.executed();
    uint64_t size = console_.interactive() ? 200'000 : 2'000'000;
    if (trace_ != nullptr && trace_->waits()) size = 10'000;  // the trace begins between two slices
    if (arguments_.hash_every != 0)
      size = std::min(size, arguments_.hash_every - done % arguments_.hash_every);
    if (arguments_.limit != 0) size = std::min(size, arguments_.limit - done);
    if (arguments_.save_at > done) size = std::min(size, arguments_.save_at - done);
    return size;
  }

  bool save_is_due() const {
    return arguments_.save_at != 0 && !saved_ && pc_.executed() >= arguments_.save_at;
  }

  Result<void> save() {
    TRY(vm::save_snapshot(arguments_.save, machine_));
    saved_ = true;
    return {};
  }

  Result<void> save_at_the_end(vm::PcStop stop) {
    if (stop == vm::PcStop::Budget && arguments_.save_at == 0) return save();
    return error("{} after {} instructions, so there is no machine to save; {}", stop_sentence(stop),
                 pc_.executed(),
                 arguments_.save_at == 0 ? "say where with --save-at" : "give --save-at a smaller number");
  }

  std::string show_output() {
    std::string text = run_.take_output();
    if (arguments_.json)
      output_ += text;
    else
      console_.output(text);
    return text;
  }

  Result<Exit> outcome(vm::PcStop stop) const {
    if (stop == vm::PcStop::Unknown) {
      std::cerr << "slalom: " << pc_.trouble() << "  Please report this with the lines above.\n";
      return Exit::Internal;
    }
    if (stop == vm::PcStop::Shutdown) return Exit::Findings;
    // The guest's exit code, passed on as QEMU does. The guest defines its meaning.
    if (stop == vm::PcStop::Exit) return static_cast<Exit>(pc_.exit_code() & 0xff);
    return Exit::Clean;
  }

  Result<Exit> report(vm::PcStop stop, double seconds) {
    if (arguments_.screen) std::cout << pc_.devices().text_screen(pc_.ram());
    std::cout.flush();
    std::string each;
    for (unsigned i = 0; i < pc_.cpu_count(); ++i)
      each += fmt::format("{}{}", i == 0 ? "" : " + ", grouped(pc_.cpu(i).regs.retired));
    std::cerr << fmt::format("\n{}: {}", printable(machine_.kernel), stop_sentence(stop));
    if (stop == vm::PcStop::Exit) std::cerr << fmt::format(" with exit code {}", pc_.exit_code() & 0xff);
    std::cerr << "\n";
    if (stop == vm::PcStop::Shutdown) std::cerr << pc_.trouble();
    std::cerr << fmt::format("  instructions  {}\n", each);
    std::cerr << fmt::format("  virtual time  {:.3f} s\n", static_cast<double>(pc_.time()) * 1e-9);
    std::cerr << fmt::format("  speed         {:.0f} million instructions a second, {:.2f} s in all\n",
                             static_cast<double>(pc_.executed()) * 1e-6 / std::max(seconds, 1e-6), seconds);
    for (const HashAt& at : hashes_) std::cout << fmt::format("{:>14}  {:016x}\n", at.instructions, at.hash);
    return outcome(stop);
  }

  Result<Exit> report_json(vm::PcStop stop) {
    nlohmann::ordered_json cpus = nlohmann::ordered_json::array();
    for (unsigned i = 0; i < pc_.cpu_count(); ++i) cpus.push_back(pc_.cpu(i).regs.retired);
    nlohmann::ordered_json hashes = nlohmann::ordered_json::array();
    for (const HashAt& at : hashes_)
      hashes.push_back({{"instructions", at.instructions}, {"hash", fmt::format("{:016x}", at.hash)}});
    nlohmann::ordered_json json = {
        {"kernel", machine_.kernel}, {"identity", machine_.identity},     {"stop", stop_name(stop)},
        {"instructions", cpus},      {"virtual_nanoseconds", pc_.time()}, {"hashes", hashes},
        {"console", output_}};
    if (stop == vm::PcStop::Exit) json["exit_code"] = pc_.exit_code() & 0xff;
    if (const vm::Cpu* cpu = pc_.gave_up()) {
      json["cpu"] = cpu->id;
      json["faults"] = faults_json(*cpu);
    }
    std::cout << json_text(json);
    return outcome(stop);
  }

  const BootArguments& arguments_;
  vm::Booted machine_;
  vm::Pc& pc_;
  vm::NaturalRun run_;
  Console console_;
  std::unique_ptr<BootTrace> trace_;
  std::string output_;
  std::vector<HashAt> hashes_;
  bool saved_ = false;
};

Result<vm::Booted> make_machine(const BootArguments& arguments) {
  if (!arguments.load.empty()) return vm::load_snapshot(arguments.load);
  vm::BootOptions options = arguments.boot;
  TRY_ASSIGN(options.pc.memory, parse_memory(arguments.memory));
  for (const std::string& text : arguments.files) {
    TRY_ASSIGN(vm::ExtraFile file, parse_file(text));
    options.files.push_back(std::move(file));
  }
  return vm::boot(options);
}

Result<Exit> boot(const BootArguments& arguments) {
  TRY_ASSIGN(vm::Booted machine, make_machine(arguments));
  const uint64_t done = machine.pc->executed();
  for (const auto& [option, place] :
       {std::pair("--limit", arguments.limit), std::pair("--save-at", arguments.save_at)})
    if (place != 0 && place <= done)
      return error("{} {}: {} has executed {} instructions already; give a larger number", option, place,
                   arguments.load.string(), done);
  watch_interrupt();
  return BootSession(arguments, std::move(machine)).run();
}

void add_trace_options(CLI::App& verb, BootTraceOptions& options) {
  CLI::Option* trace =
      verb.add_option("--trace", options.filters,
                      "show what the kernel does, as it does it (docs/howto-trace.md): of "
                      "syscalls, locks, alloc, irq, sched, panic, all, stacks, calls:PREFIX*, "
                      "access:SYMBOL")
          ->type_name("WHAT")
          ->delimiter(',');
  verb.add_option("--trace-after", options.after, "begin when this text has appeared on the console")
      ->type_name("TEXT")
      ->needs(trace);
  verb.add_option("--trace-to", options.to, "show it in this file, instead of standard error")
      ->type_name("FILE")
      ->needs(trace);
  verb.add_option(
          "--debug-info", options.debug_info,
          "a vmlinux of this kernel with debug information, for source lines (found by itself where the "
          "kernel's debug package is installed)")
      ->type_name("FILE")
      ->needs(trace);
  verb.add_option("--save-trace", options.save, "save it, too, for slalom trace and slalom detect")
      ->type_name("FILE")
      ->needs(trace);
  trace->excludes(verb.get_option("--gdb"));
}

}  // namespace

void add_boot(CLI::App& app, Run& run) {
  auto a = std::make_shared<BootArguments>();
  CLI::App* verb =
      app.add_subcommand("boot", "Run a kernel in slalom's virtual machine; its console is the terminal.");
  verb->add_option("--kernel", a->boot.kernel,
                   "debian:5.10, debian:6.1 (the default), debian:6.12, debian:sid, each also with a flavour "
                   "or a build "
                   "(docs/howto-kernels.md); or a bzImage, vmlinux or multiboot file")
      ->type_name("K");
  verb->add_option("--initrd", a->boot.initrd, "the first file system, instead of busybox and slalom's agent")
      ->type_name("FILE");
  verb->add_option("--append", a->boot.append, "more for the kernel's command line")->type_name("TEXT");
  verb->add_option("--run", a->boot.run, "run this command in the guest and switch off, instead of a shell")
      ->type_name("COMMAND");
  verb->add_option(
          "--module", a->boot.modules,
          "load this module of the kernel first, with what it needs; parameters follow the name, as \"loop "
          "max_loop=4\" (repeatable)")
      ->type_name("NAME");
  verb->add_option("--modules", a->boot.module_directory,
                   "the directory with the modules of a kernel of your own (found by itself in the kernel's "
                   "build tree "
                   "and in /lib/modules)")
      ->type_name("DIR");
  verb->add_option("--file", a->files, "put a file or directory of the host into the guest (repeatable)")
      ->type_name("HOST:GUEST");
  verb->add_option("--multiboot-module", a->boot.multiboot_modules,
                   "give this file to a multiboot kernel (repeatable)")
      ->type_name("FILE");
  verb->add_option("--cpus", a->boot.pc.cpus, "1 to 8 (default 1)")
      ->type_name("N")
      ->check(whole_number(1, 8));
  verb->add_option("--memory", a->memory, "64M to 4G (default 256M)")->type_name("SIZE");
  verb->add_option("--seed", a->boot.seed, "of the guest's random numbers (default 0)")->type_name("N");
  verb->add_option("--limit", a->limit, "stop after that many instructions")
      ->type_name("N")
      ->check(whole_number(1));
  verb->add_option("--state-hash-every", a->hash_every, "hash the whole machine every N instructions")
      ->type_name("N")
      ->check(whole_number(1));
  CLI::Option* save =
      verb->add_option("--save", a->save,
                       "save the machine to a file: when --limit is reached or you end it, or at --save-at")
          ->type_name("FILE");
  verb->add_option("--save-at", a->save_at, "save it after that many instructions, and go on")
      ->type_name("N")
      ->check(whole_number(1))
      ->needs(save);
  // The parts of a saved machine were fixed when it was booted, so these options exclude --load.
  CLI::Option* load =
      verb->add_option("--load", a->load, "go on with a machine that --save has saved")->type_name("FILE");
  for (const char* option : {"--kernel", "--initrd", "--append", "--run", "--module", "--modules", "--file",
                             "--multiboot-module", "--cpus", "--memory", "--seed"})
    load->excludes(verb->get_option(option));
  CLI::Option* gdb =
      verb->add_option("--gdb", a->gdb,
                       "wait for a debugger on this port of the loopback interface, 0 for any that is free; "
                       "it can also go backward")
          ->type_name("PORT")
          ->check(whole_number(0, 65535));
  for (const char* option : {"--limit", "--state-hash-every", "--save"})
    gdb->excludes(verb->get_option(option));
  add_trace_options(*verb, a->trace);
  verb->add_flag("--screen", a->screen, "show the text screen at the end");
  verb->add_flag("--json", a->json, "what happened, the console included, as JSON on standard output");
  verb->callback([a, &run] { run = [a] { return boot(*a); }; });
}

}  // namespace slalom
