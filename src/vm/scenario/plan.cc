#include "vm/scenario/plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/child.h"
#include "base/file.h"
#include "kernel_store/kernel_cache.h"
#include "kernel_store/modules.h"
#include "kernel_store/own_kernel.h"

extern "C" {
extern const char slalom_header_begin[];
extern const char slalom_header_end[];
}

namespace slalom::vm {
namespace {

constexpr const char* kGuestDirectory = "/lib/slalom/";
constexpr size_t kMaxPlan = 60'000;  // the agent's buffer has 64 KiB

class Planner {
 public:
  Planner(const KernelTest& test, TestPlan& plan) : test_(test), plan_(plan) {}

  Result<void> make() {
    plan_.boot.kernel = test_.kernel;
    if (!test_.module_directory.text.empty())
      plan_.boot.module_directory = test_.directory() / test_.module_directory.text;
    plan_.boot.append = test_.append;
    plan_.boot.pc.cpus = test_.cpus;
    plan_.boot.pc.memory = test_.memory;
    for (const KernelTest::Entry& file : test_.files) TRY(add_file(file));
    TRY(add_modules());
    for (const KernelTest::Entry& command : test_.setup)
      add('S', command.text, {at(command.line), fmt::format("set-up command `{}`", command.text)});
    if (test_.prepared(0) != nullptr) add('A', "", {test_.file, "calls that are prepared for all flows"});
    for (size_t i = 0; i < test_.flows.size(); ++i) {
      const KernelTest::Flow& flow = test_.flows[i];
      const PlanPart part{at(flow.line), flow.name};
      TRY(add_flow(flow, flow.process == i));
      if (test_.prepared(1 + i) != nullptr) add('Q', "", part);
      if (flow.process != i) add('T', fmt::format("{}", flow.process), part);
    }
    if (!test_.check.text.empty())
      add('C', test_.check.text, {at(test_.check.line), fmt::format("the check `{}`", test_.check.text)});
    if (plan_.text.size() > kMaxPlan)
      return error("{}: the set-up is too long: put it into a script and give that with files", test_.file);
    return {};
  }

 private:
  std::string at(int line) const { return fmt::format("{}:{}", test_.file, line); }

  void add(char kind, std::string_view text, PlanPart part) {
    plan_.text += kind;
    plan_.text += text;
    plan_.text += '\0';
    plan_.parts.push_back(std::move(part));
  }

  Result<void> check_exists(const std::filesystem::path& path, int line, std::string_view what) const {
    std::error_code trouble;
    if (std::filesystem::exists(path, trouble)) return {};
    return error("{}: there is no {} {}; paths are relative to the test's file", at(line), what,
                 path.string());
  }

  Result<void> add_file(const KernelTest::Entry& file) {
    const size_t colon = file.text.rfind(':');
    const std::filesystem::path host = test_.directory() / file.text.substr(0, colon);
    TRY(check_exists(host, file.line, "file"));
    plan_.boot.files.push_back({.host = host, .guest = file.text.substr(colon + 1)});
    return {};
  }

  // The kernel with its modules. If there is none, booting reports it.
  Result<void> find_kernel_and_modules() {
    TRY_ASSIGN(const KernelCache kernels, KernelCache::open());
    Result<Kernel> kernel = find_kernel(kernels, test_.kernel);
    if (!kernel.ok()) return {};
    kernel = with_own_modules(*std::move(kernel), plan_.boot.module_directory);
    if (!kernel.ok()) {
      const int line = test_.module_directory.line;  // 0: it was given on the command line
      return line == 0 ? kernel.error() : error("{}: {}", at(line), kernel.error().message);
    }
    kernel_ = *std::move(kernel);
    if (kernel_->modules.empty()) return {};
    TRY_ASSIGN(ModuleTree tree, ModuleTree::open(kernel_->modules));
    tree_.emplace(std::move(tree));
    return {};
  }

  // Looks next to the test, then among the example modules built for this kernel (scripts/build-modules).
  Result<std::filesystem::path> find_module(int line, const std::string& name) const {
    std::error_code trouble;
    const std::filesystem::path beside = test_.directory() / name;
    if (std::filesystem::exists(beside, trouble)) return beside;
    TRY_ASSIGN(const std::filesystem::path cache, cache_directory());
    const std::string release = kernel_ ? kernel_->release : "";
    const std::filesystem::path built = cache / "modules" / release / name;
    if (name.find('/') == std::string::npos && !release.empty() && std::filesystem::exists(built, trouble))
      return built;
    return error(
        "{}: there is no module {}: build it first (for slalom's examples: scripts/build-modules {})",
        at(line), beside.string(), test_.kernel);
  }

  // A module of the test that is a file.
  struct ModuleFile {
    const KernelTest::Entry* entry;
    std::string parameters;
    std::filesystem::path host;
    Module module;  // without a name if it is damaged: the kernel will say so
    bool added = false;
  };

  Result<void> add_modules() {
    if (test_.modules.empty() && test_.module_directory.text.empty()) return {};
    TRY(find_kernel_and_modules());
    std::vector<ModuleFile> files;
    for (const KernelTest::Entry& entry : test_.modules) {
      if (!is_module_file(entry.text)) continue;
      const size_t space = std::min(entry.text.find(' '), entry.text.size());
      ModuleFile file{.entry = &entry, .parameters = entry.text.substr(space)};
      TRY_ASSIGN(file.host, find_module(entry.line, entry.text.substr(0, space)));
      if (Result<Module> module = read_module(file.host); module.ok()) file.module = *std::move(module);
      files.push_back(std::move(file));
    }
    for (const KernelTest::Entry& entry : test_.modules) {
      if (!is_module_file(entry.text)) {
        add_named_module(entry);
        continue;
      }
      TRY(add_module_file(*std::ranges::find(files, &entry, &ModuleFile::entry), files));
    }
    return {};
  }

  void add_named_module(const KernelTest::Entry& entry) {
    const WantedModule wanted = parse_wanted_module(entry.text);
    plan_.boot.modules.push_back(entry.text);
    if (tree_ && tree_->is_builtin(wanted.name)) return;  // there is nothing to load
    add('L', wanted.name, {at(entry.line), fmt::format("module {}:", wanted.name)});
  }

  // Adds a file after those of `all` that it needs.
  Result<void> add_module_file(ModuleFile& file, std::vector<ModuleFile>& all) {
    if (file.added) return {};
    file.added = true;
    for (const std::string& needed : file.module.depends) {
      const auto given =
          std::ranges::find(all, needed, [](const ModuleFile& one) { return one.module.name; });
      if (given != all.end())
        TRY(add_module_file(*given, all));
      else if (tree_)
        plan_.boot.modules.push_back(needed);
    }
    const std::string name = file.host.filename().string();
    const std::string release = kernel_ ? kernel_->release : "";
    for (const Result<void>& fits :
         {check_built_for(file.module, release),
          file.module.name.empty() ? Result<void>() : check_parameters(file.module, file.parameters)})
      if (!fits.ok()) return error("{}: {}", at(file.entry->line), fits.error().message);
    const bool is_other =
        !release.empty() && !file.module.built_for.empty() && file.module.built_for != release;
    const std::string guest = fmt::format("{}modules/{}/{}", kGuestDirectory, plan_.parts.size(), name);
    plan_.boot.files.push_back({.host = file.host, .guest = guest});
    plan_.modules.push_back(file.host);
    add('M', guest + file.parameters,
        {at(file.entry->line),
         fmt::format("module {}{}:", file.entry->text.substr(0, file.entry->text.find(' ')),
                     is_other ? fmt::format(", which was built for Linux {} and not for {}",
                                            file.module.built_for, release)
                              : "")});
    return {};
  }

  // `leads`: it is the first flow of its process, which is started for it.
  Result<void> add_flow(const KernelTest::Flow& flow, bool leads) {
    const PlanPart part{at(flow.line), flow.name};
    if (flow.kind == KernelTest::Flow::Kind::Calls || !leads) {
      add('F', "", part);
      return {};
    }
    TRY(check_exists(flow.path, flow.line, "file"));
    std::filesystem::path host = flow.path;
    if (flow.kind == KernelTest::Flow::Kind::Source) {
      TRY_ASSIGN(host, compile(flow));
    }
    const std::string guest =
        fmt::format("{}flows/{}/{}", kGuestDirectory, plan_.parts.size(), host.filename().string());
    plan_.boot.files.push_back({.host = host, .guest = guest});
    add('F', guest, part);
    return {};
  }

  Result<std::filesystem::path> compile(const KernelTest::Flow& flow) {
    if (!plan_.scratch) {
      TRY_ASSIGN(TemporaryFolder folder, TemporaryFolder::make("flows"));
      plan_.scratch.emplace(std::move(folder));
      TRY(write_file(plan_.scratch->path() / "slalom.h", hypercall_header()));
    }
    const std::filesystem::path program =
        plan_.scratch->path() / fmt::format("{}-{}", plan_.parts.size(), flow.path.stem().string());
    const char* compiler = std::getenv("CC");
    // Without a build id, the same source always gives the same machine. An absolute path cannot look like a
    // compiler option, whatever the test names its file.
    TRY_ASSIGN(const ChildOutput made,
               run_child({.program = compiler != nullptr && *compiler != '\0' ? compiler : "cc",
                          .arguments = {"-static", "-O2", "-pthread", "-Wl,--build-id=none", "-I",
                                        plan_.scratch->path().string(), "-o", program.string(),
                                        std::filesystem::absolute(flow.path).string()}},
                         "gcc"));
    if (made.status != 0)
      return error("{}: {} does not compile:\n{}", at(flow.line), flow.path.string(), made.errors);
    return program;
  }

  const KernelTest& test_;
  TestPlan& plan_;
  std::optional<Kernel> kernel_;    // if the test has modules
  std::optional<ModuleTree> tree_;  // its own modules
};

}  // namespace

std::string_view hypercall_header() {
  return {slalom_header_begin, static_cast<size_t>(slalom_header_end - slalom_header_begin)};
}

Result<TestPlan> plan_of(const KernelTest& test) {
  TestPlan plan;
  TRY(Planner(test, plan).make());
  return plan;
}

}  // namespace slalom::vm
