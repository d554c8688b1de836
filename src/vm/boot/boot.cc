#include "vm/boot/boot.h"

#include "base/file.h"
#include "base/log.h"
#include "kernel_store/modules.h"
#include "kernel_store/own_kernel.h"
#include "vm/boot/image.h"
#include "vm/boot/linux.h"
#include "vm/boot/multiboot.h"
#include "vm/devices/acpi.h"

namespace slalom::vm {
namespace {

Result<std::vector<uint8_t>> initial_files(const BootOptions& options, const Kernel& kernel) {
  if (!options.initrd.empty()) {
    if (!options.run.empty() || !options.modules.empty() || !options.files.empty())
      return error("--run, --module and --file are for the initrd that slalom makes: leave out --initrd");
    return read_file(options.initrd);
  }
  TRY_ASSIGN(const std::filesystem::path cache, cache_directory());
  return cached_initramfs(
      cache / "initramfs",
      {.kernel = kernel, .modules = options.modules, .files = options.files, .agent = agent_program()});
}

// Modules that are built in take their parameters from the kernel's command line.
Result<std::string> built_in_parameters(const Kernel& kernel, const std::vector<std::string>& modules) {
  std::string options;
  for (const std::string& text : modules) {
    const WantedModule wanted = parse_wanted_module(text);
    if (wanted.parameters.empty() || kernel.modules.empty()) continue;
    TRY_ASSIGN(const ModuleTree tree, ModuleTree::open(kernel.modules));
    if (tree.is_builtin(wanted.name)) options += (options.empty() ? "" : " ") + as_kernel_options(wanted);
  }
  return options;
}

Result<std::string> command_line(const BootOptions& options, const Kernel& kernel) {
  TRY_ASSIGN(std::string append, built_in_parameters(kernel, options.modules));
  if (!append.empty() && !options.append.empty()) append += ' ';
  append += options.append;
  if (!options.run.empty()) {
    if (options.run.find('"') != std::string::npos)
      return error(
          "a command for the guest must not contain double quotes: put it into a script and give that with "
          "--file");
    // A kernel that does not know the option keeps it on its command line for programs to read.
    append += fmt::format("{}slalom.run=\"{}\"", append.empty() ? "" : " ", options.run);
  }
  return linux_command_line(kTscKhz, append);
}

Result<EntryState> load(const BootOptions& options, const Kernel& kernel, const Image& image, Ram& ram) {
  const std::vector<uint8_t> tables = acpi_tables(options.pc.cpus);
  if (image.kind != ImageKind::Multiboot) {
    LinuxOptions linux{.acpi_tables = tables, .seed = options.seed};
    TRY_ASSIGN(linux.command_line, command_line(options, kernel));
    TRY_ASSIGN(linux.initrd, initial_files(options, kernel));
    return load_linux(ram, image, linux);
  }
  if (!options.initrd.empty() || !options.run.empty() || !options.modules.empty() || !options.files.empty())
    return error(
        "{} is a multiboot kernel: it takes --append and --multiboot-module, not files of a Linux system",
        kernel.name);
  MultibootOptions multiboot{.command_line = options.append, .acpi_tables = tables};
  for (const std::filesystem::path& path : options.multiboot_modules) {
    TRY_ASSIGN(std::vector<uint8_t> bytes, read_file(path));
    multiboot.modules.push_back({.bytes = std::move(bytes), .command_line = path.filename().string()});
  }
  return load_multiboot(ram, image, multiboot);
}

}  // namespace

Result<Kernel> kernel_of(const BootOptions& options) {
  TRY_ASSIGN(const KernelCache cache, KernelCache::open());
  TRY_ASSIGN(Kernel kernel, find_kernel(cache, options.kernel));
  if (options.modules.empty() && options.module_directory.empty()) return kernel;
  return with_own_modules(std::move(kernel), options.module_directory);
}

Result<Booted> boot(const BootOptions& options) {
  TRY_ASSIGN(const Kernel kernel, kernel_of(options));
  TRY_ASSIGN(const Image image, read_image(kernel.vmlinuz));
  TRY_ASSIGN(std::unique_ptr<Pc> pc, Pc::make(options.pc));
  DEBUG_LOG(Vm, "boot {}: image {} of {} bytes unpacked, {} segments, {} CPUs, {} bytes of memory",
            kernel.name, image.identity, image.data.size(), image.segments.size(), options.pc.cpus,
            options.pc.memory);
  TRY_ASSIGN(const EntryState entry, load(options, kernel, image, pc->ram()));
  DEBUG_LOG(Vm, "boot {}: loaded, enter at {:#x}", kernel.name, entry.rip);
  pc->enter(entry);
  return Booted{.pc = std::move(pc), .kernel = kernel.exact_name(), .identity = image.identity};
}

}  // namespace slalom::vm
