#include "vm/scenario/plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/child.h"
#include "base/file.h"
#include "kernel_store/kernel_cache.h"
#include "kernel_store/modules.h"

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
    plan_.boot.append = test_.append;
    plan_.boot.pc.cpus = test_.cpus;
    plan_.boot.pc.memory = test_.memory;
    for (const KernelTest::Entry& file : test_.files) TRY(add_file(file));
    for (const KernelTest::Entry& module : test_.modules) TRY(add_module(module));
    for (const KernelTest::Entry& command : test_.setup)
      add('S', command.text, {at(command.line), fmt::format("set-up command `{}`", command.text)});
    for (const KernelTest::Flow& flow : test_.flows) TRY(add_flow(flow));
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

  // Loading a built-in module fails, and the guest's message would not say why.
  Result<void> check_not_built_in(int line, const std::string& name) const {
    TRY_ASSIGN(const KernelCache kernels, KernelCache::open());
    const Result<Kernel> kernel = find_kernel(kernels, test_.kernel);
    if (!kernel.ok() || kernel->modules.empty()) return {};  // if the kernel is missing, booting reports it
    TRY_ASSIGN(const ModuleTree tree, ModuleTree::open(kernel->modules));
    if (!tree.is_builtin(name)) return {};
    return error("{}: the module {} is built into {}, so there is nothing to load: leave it out", at(line),
                 name, test_.kernel);
  }

  // Looks next to the test, then among the example modules built for this kernel (scripts/build-modules).
  Result<std::filesystem::path> find_module(int line, const std::string& name) const {
    std::error_code trouble;
    const std::filesystem::path beside = test_.directory() / name;
    if (std::filesystem::exists(beside, trouble)) return beside;
    TRY_ASSIGN(const KernelCache kernels, KernelCache::open());
    TRY_ASSIGN(const Kernel kernel, find_kernel(kernels, test_.kernel));
    TRY_ASSIGN(const std::filesystem::path cache, cache_directory());
    const std::filesystem::path built = cache / "modules" / kernel.release / name;
    if (name.find('/') == std::string::npos && !kernel.release.empty() &&
        std::filesystem::exists(built, trouble))
      return built;
    return error(
        "{}: there is no module {}: build it first (for slalom's examples: scripts/build-modules {})",
        at(line), beside.string(), test_.kernel);
  }

  Result<void> add_module(const KernelTest::Entry& module) {
    const size_t space = std::min(module.text.find(' '), module.text.size());
    const std::string name = module.text.substr(0, space);
    const PlanPart part{at(module.line), fmt::format("module {}:", name)};
    if (!is_module_file(module.text)) {
      if (space != module.text.size())
        return error("{}: only a module that is a file can have parameters, such as \"x.ko size=3\"",
                     at(module.line));
      TRY(check_not_built_in(module.line, name));
      plan_.boot.modules.push_back(name);
      std::string loaded = name;
      std::replace(loaded.begin(), loaded.end(), '-', '_');
      add('L', loaded, part);
      return {};
    }
    TRY_ASSIGN(const std::filesystem::path host, find_module(module.line, name));
    const std::string guest =
        fmt::format("{}modules/{}/{}", kGuestDirectory, plan_.parts.size(), host.filename().string());
    plan_.boot.files.push_back({.host = host, .guest = guest});
    plan_.modules.push_back(host);
    add('M', guest + module.text.substr(space), part);
    return {};
  }

  Result<void> add_flow(const KernelTest::Flow& flow) {
    const PlanPart part{at(flow.line), flow.name};
    if (flow.kind == KernelTest::Flow::Kind::Calls) {
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
