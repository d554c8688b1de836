#include "vm/scenario/kernel_test.h"

#define TOML_EXCEPTIONS 0
// Some malformed table headers violate assertions of toml++ before it reports them as errors.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/toml_check.h"
#include "kernel_store/kernel_cache.h"
#include "vm/guests/linux/linux_scope.h"

namespace slalom::vm {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& origin) : text_(text) {
    test_.file = origin;
    test_.name = std::filesystem::path(origin).stem().string();
    test_.kernel = kDefaultKernel;
  }

  Result<KernelTest> read() {
    const auto strange =
        std::ranges::find_if(text_, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    if (strange != text_.end())
      return error("{}:{}: only ASCII characters may be in a kernel test; write bytes of a text as \\xNN",
                   test_.file, 1 + std::count(text_.begin(), strange, '\n'));
    TRY(check_toml(text_, test_.file));
    const toml::parse_result parsed = toml::parse(text_);
    if (!parsed)
      return error("{}:{}:{}: {}", test_.file, parsed.error().source().begin.line,
                   parsed.error().source().begin.column, parsed.error().description());
    const toml::table& root = parsed.table();
    TRY(only_keys(root, "a kernel test", {"name",      "about",   "kernel", "debug_info", "module_directory",
                                          "cpus",      "memory",  "append", "modules",    "files",
                                          "setup",     "check",   "scope",  "scheduler",  "contexts",
                                          "detectors", "prepare", "flow",   "process",    "expect",
                                          "limits"}));
    TRY(read_text(root, "name", test_.name));
    TRY(read_text(root, "about", test_.about));
    TRY(read_text(root, "kernel", test_.kernel));
    if (const toml::node* node = root.get("kernel")) {
      test_.kernel_line = line_of(*node);
      // Anything that is no kernel name is a path.
      if (test_.kernel.find('/') != std::string::npos || test_.kernel.find(':') == std::string::npos)
        test_.kernel = (test_.directory() / test_.kernel).string();
      else if (const Result<KernelName> name = parse_kernel_name(test_.kernel); !name.ok())
        return wrong(*node, "{}", name.error().message);
    }
    TRY(read_text(root, "debug_info", test_.debug_info.text));
    if (const toml::node* node = root.get("debug_info")) test_.debug_info.line = line_of(*node);
    TRY(read_text(root, "module_directory", test_.module_directory.text));
    if (const toml::node* node = root.get("module_directory")) {
      test_.module_directory.line = line_of(*node);
      if (looks_like_kernel_name(test_.kernel))
        return wrong(*node, "`module_directory` is for a kernel of your own, and {} comes with its modules",
                     test_.kernel);
    }
    TRY(read_text(root, "append", test_.append));
    TRY_ASSIGN(test_.modules, entries_of(root, "modules"));
    TRY_ASSIGN(test_.files, entries_of(root, "files"));
    TRY_ASSIGN(test_.setup, entries_of(root, "setup"));
    TRY(read_text(root, "check", test_.check.text));
    if (const toml::node* node = root.get("check")) test_.check.line = line_of(*node);
    for (const KernelTest::Entry& file : test_.files)
      if (file.text.find(':') == std::string::npos)
        return error("{}:{}: a file is given as \"HOST:GUEST\", not \"{}\"", test_.file, file.line,
                     file.text);
    TRY(read_flows(root));
    TRY(read_machine(root));
    TRY(read_search(root));
    TRY(read_expect(root));
    TRY(read_limits(root));
    return std::move(test_);
  }

 private:
  template <typename... Args>
  Error wrong(const toml::node& node, fmt::format_string<Args...> format, Args&&... args) const {
    return error("{}:{}: {}", test_.file, line_of(node), fmt::format(format, std::forward<Args>(args)...));
  }
  static int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

  Result<void> only_keys(const toml::table& table, std::string_view where,
                         std::initializer_list<std::string_view> known) const {
    // Report the first unknown key of the file; toml::table does not keep the order.
    const toml::node* first = nullptr;
    std::string_view name;
    for (const auto& [key, node] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      if (first != nullptr && line_of(node) >= line_of(*first)) continue;
      first = &node;
      name = key.str();
    }
    if (first == nullptr) return {};
    return wrong(*first, "unknown key `{}` in {}; it may have: {}", name, where, fmt::join(known, ", "));
  }

  Result<void> read_text(const toml::table& table, std::string_view key, std::string& value) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    const auto text = node->value_exact<std::string>();
    if (!text || text->empty()) return wrong(*node, "`{}` must be a text in quotes", key);
    if (text->find('\0') != std::string::npos) return wrong(*node, "`{}` must have no zero byte", key);
    value = *text;
    return {};
  }

  // The value is one text or a list of texts.
  Result<std::vector<KernelTest::Entry>> entries_of(const toml::table& table, std::string_view key) const {
    std::vector<KernelTest::Entry> entries;
    const toml::node* node = table.get(key);
    if (node == nullptr) return entries;
    const auto add = [&](const toml::node& item) -> Result<void> {
      const auto text = item.value_exact<std::string>();
      if (!text || text->empty() || text->find('\0') != std::string::npos)
        return wrong(item, "`{}` must be a list of texts in quotes", key);
      entries.push_back({*text, line_of(item)});
      return {};
    };
    if (const toml::array* list = node->as_array()) {
      for (const toml::node& item : *list) TRY(add(item));
    } else {
      TRY(add(*node));
    }
    return entries;
  }

  Result<void> read_number(const toml::table& table, std::string_view key, uint64_t least, uint64_t most,
                           uint64_t& value) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    const auto number = node->value_exact<int64_t>();
    if (!number || *number < 0 || static_cast<uint64_t>(*number) < least ||
        static_cast<uint64_t>(*number) > most)
      return wrong(*node, "`{}` must be a number from {} to {}", key, least, most);
    value = static_cast<uint64_t>(*number);
    return {};
  }

  // A multi-line text begins on the line after its quotes.
  int text_line(const toml::node& node) const {
    const auto begin = node.source().begin;
    std::string_view rest = text_;
    for (uint32_t line = 1; line < begin.line && !rest.empty(); ++line)
      rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
    rest = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min<size_t>(begin.column - 1, rest.size()));
    const bool below = (rest.starts_with("\"\"\"") || rest.starts_with("'''")) &&
                       rest.find_first_not_of(" \t\r", 3) == std::string_view::npos;
    return line_of(node) + (below ? 1 : 0);
  }

  Result<void> read_flows(const toml::table& root) {
    const toml::node* node = root.get("flow");
    if (node == nullptr)
      return error("{}: the test has no flows: write two or more [[flow]] with calls = \"...\"", test_.file);
    if (!node->is_array_of_tables()) return wrong(*node, "`flow` must be a list of tables: write [[flow]]");
    TRY_ASSIGN(prepared_, read_prepared(root, {}));
    test_.prepare = prepared_.program;
    for (const toml::node& item : *node->as_array()) TRY(read_flow(*item.as_table()));
    if (test_.flows.size() > KernelTest::kMaxFlows)
      return wrong(*node, "the test has {} flows; at most {} can run, a CPU each", test_.flows.size(),
                   KernelTest::kMaxFlows);
    TRY(read_processes(root));
    for (const KernelTest::Flow& flow : test_.flows)
      if (flow.kind != KernelTest::Flow::Kind::Calls && flow.path.empty())
        return error("{}:{}: a flow is one of: calls = '''...''', program = \"FILE\" or source = \"FILE.c\"",
                     test_.file, flow.line);
    return {};
  }

  // Reads the calls of `prepare`; without steps if the table has no such key.
  Result<NamedCalls> read_prepared(const toml::table& table, const PreparedCalls& before) const {
    std::string calls;
    TRY(read_text(table, "prepare", calls));
    if (calls.empty()) return NamedCalls{};
    const toml::node& node = *table.get("prepare");
    TRY_ASSIGN(NamedCalls read, parse_named_calls(calls, test_.file, text_line(node), before));
    for (const CallStep& step : read.program.steps)
      if (step.kind == CallStep::Kind::Choose)
        return wrong(node, "choose() is explored, and prepared calls are not: use it in the calls of a flow");
    return read;
  }

  Result<void> read_flow(const toml::table& table) {
    TRY(only_keys(table, "[[flow]]", {"name", "prepare", "calls", "program", "source"}));
    KernelTest::Flow flow{.name = fmt::format("flow {}", test_.flows.size()),
                          .line = line_of(table),
                          .process = test_.flows.size()};
    TRY(read_text(table, "name", flow.name));
    std::string calls, program, source;
    TRY(read_text(table, "calls", calls));
    TRY(read_text(table, "program", program));
    TRY(read_text(table, "source", source));
    if (static_cast<int>(!calls.empty()) + !program.empty() + !source.empty() > 1)
      return wrong(table, "a flow is one of: calls = '''...''', program = \"FILE\" or source = \"FILE.c\"");
    if (const toml::node* prepare = table.get("prepare"); prepare != nullptr && calls.empty())
      return wrong(
          *prepare,
          "only a flow that is a list of calls can `prepare`: a program prepares before slalom_begin()");
    if (!calls.empty()) {
      TRY_ASSIGN(const NamedCalls prepared, read_prepared(table, {.of_all = &prepared_}));
      flow.prepare = prepared.program;
      TRY_ASSIGN(NamedCalls own, parse_named_calls(calls, test_.file, text_line(*table.get("calls")),
                                                   {.of_flow = &prepared, .of_all = &prepared_}));
      flow.calls = std::move(own.program);
    } else {
      flow.kind = program.empty() ? KernelTest::Flow::Kind::Source : KernelTest::Flow::Kind::Program;
      if (!program.empty() || !source.empty())
        flow.path = test_.directory() / (program.empty() ? source : program);
    }
    test_.flows.push_back(std::move(flow));
    return {};
  }

  // [process] or several [[process]].
  Result<void> read_processes(const toml::table& root) {
    const toml::node* node = root.get("process");
    if (node == nullptr) return {};
    if (const toml::table* one = node->as_table()) return read_process(*one);
    if (!node->is_array_of_tables())
      return wrong(*node, "`process` must be a table: write [process] or [[process]]");
    for (const toml::node& item : *node->as_array()) TRY(read_process(*item.as_table()));
    return {};
  }

  Result<void> read_process(const toml::table& table) {
    TRY(only_keys(table, "[process]", {"flows", "program", "source"}));
    std::string program, source;
    TRY(read_text(table, "program", program));
    TRY(read_text(table, "source", source));
    if (!program.empty() && !source.empty())
      return wrong(table, "a process has a program or a source, not both");
    TRY_ASSIGN(const std::vector<KernelTest::Entry> names, entries_of(table, "flows"));
    if (names.size() < 2)
      return wrong(table, "a process needs flows = [...] with the names of two flows or more");
    std::vector<size_t> members;
    for (const KernelTest::Entry& name : names) {
      const auto found = std::ranges::find(test_.flows, name.text, &KernelTest::Flow::name);
      const auto at = [&] { return fmt::format("{}:{}", test_.file, name.line); };
      if (found == test_.flows.end()) {
        std::string known;
        for (const KernelTest::Flow& flow : test_.flows) known += (known.empty() ? "" : ", ") + flow.name;
        return error("{}: no flow is called \"{}\"; the flows are: {}", at(), name.text, known);
      }
      const auto number = static_cast<size_t>(found - test_.flows.begin());
      if (!in_process_.insert(number).second)
        return error("{}: {} is in a process already: a flow has one process", at(), name.text);
      const bool is_list = found->kind == KernelTest::Flow::Kind::Calls;
      if (is_list ? !program.empty() || !source.empty() : !found->path.empty())
        return error("{}: {} has {} of its own: the program of a process is given in [process] alone", at(),
                     name.text, is_list ? "calls" : "a program");
      members.push_back(number);
    }
    std::ranges::sort(members);
    for (const size_t member : members) {
      KernelTest::Flow& flow = test_.flows[member];
      flow.process = members.front();
      if (program.empty() && source.empty()) continue;
      flow.kind = program.empty() ? KernelTest::Flow::Kind::Source : KernelTest::Flow::Kind::Program;
      flow.path = test_.directory() / (program.empty() ? source : program);
    }
    return {};
  }

  Result<void> read_machine(const toml::table& root) {
    const uint64_t flows = test_.flows.size();
    uint64_t cpus = std::max<uint64_t>(2, flows);
    TRY(read_number(root, "cpus", flows, 8, cpus));
    test_.cpus = static_cast<unsigned>(cpus);
    std::string memory;
    TRY(read_text(root, "memory", memory));
    if (memory.empty()) return {};
    uint64_t size = 0;
    const auto [end, trouble] = std::from_chars(memory.data(), memory.data() + memory.size(), size);
    const std::string_view unit(end, memory.data() + memory.size());
    const uint64_t mega = unit == "M" ? size : unit == "G" && size < 1024 ? size * 1024 : 0;
    if (trouble != std::errc() || mega < 64 || mega > 4096)
      return wrong(*root.get("memory"), "`memory` must be \"64M\" to \"4G\", not \"{}\"", memory);
    test_.memory = mega << 20;
    return {};
  }

  Result<void> read_search(const toml::table& root) {
    TRY_ASSIGN(test_.scope, entries_of(root, "scope"));
    for (const KernelTest::Entry& one : test_.scope)
      if (!is_scope(one.text))
        return error("{}:{}: \"{}\": {}", test_.file, one.line, one.text, kScopeAdvice);
    if (const toml::node* node = root.get("scheduler")) {
      const auto given = node->value_exact<bool>();
      if (!given) return wrong(*node, "`scheduler` must be true or false");
      test_.scheduler = *given;
      if (*given && !test_.scope.empty())
        return wrong(
            *node,
            "`scheduler` has no effect with `scope`, whose functions it could not add to: leave out one");
    }
    TRY_ASSIGN(test_.detectors, entries_of(root, "detectors"));
    TRY_ASSIGN(test_.contexts, entries_of(root, "contexts"));
    bool some_cpu = test_.contexts.empty();
    for (const KernelTest::Entry& one : test_.contexts) {
      bool known = one.text == "timer" || one.text == "ipi" || one.text == "device";
      for (unsigned cpu = 0; cpu < test_.cpus; ++cpu)
        if (one.text == fmt::format("cpu{}", cpu)) known = some_cpu = true;
      if (!known)
        return error(
            "{}:{}: \"{}\" is no context: write \"cpu0\" to \"cpu{}\", \"timer\", \"ipi\" or \"device\"",
            test_.file, one.line, one.text, test_.cpus - 1);
    }
    if (!some_cpu)
      return error("{}:{}: `contexts` needs at least one CPU: add \"cpu0\"", test_.file,
                   test_.contexts.front().line);
    return {};
  }

  Result<const toml::table*> table_of(const toml::table& root, std::string_view key) const {
    const toml::node* node = root.get(key);
    if (node == nullptr) return static_cast<const toml::table*>(nullptr);
    if (!node->is_table()) return wrong(*node, "`{}` must be a table: write [{}]", key, key);
    return node->as_table();
  }

  Result<void> read_expect(const toml::table& root) {
    TRY_ASSIGN(const toml::table* table, table_of(root, "expect"));
    if (table == nullptr) return {};
    TRY(only_keys(*table, "[expect]", {"kinds", "titles"}));
    test_.expect.given = true;
    for (const auto& [key, list] :
         {std::pair("kinds", &test_.expect.kinds), std::pair("titles", &test_.expect.titles)}) {
      TRY_ASSIGN(const std::vector<KernelTest::Entry> entries, entries_of(*table, key));
      for (const KernelTest::Entry& entry : entries) list->push_back(entry.text);
    }
    return {};
  }

  Result<void> read_limits(const toml::table& root) {
    TRY_ASSIGN(const toml::table* table, table_of(root, "limits"));
    if (table == nullptr) return {};
    TRY(only_keys(*table, "[limits]", {"preparation", "execution", "check"}));
    constexpr uint64_t kMost = 1'000'000'000'000;
    TRY(read_number(*table, "preparation", 1, kMost, test_.limits.preparation));
    TRY(read_number(*table, "execution", 1, kMost, test_.limits.execution));
    return read_number(*table, "check", 1, kMost, test_.limits.check);
  }

  NamedCalls prepared_;          // for all flows
  std::set<size_t> in_process_;  // flows that a [process] has named
  std::string_view text_;
  KernelTest test_;
};

}  // namespace

void use_kernel(KernelTest& test, const std::string& kernel, const std::string& module_directory) {
  if (!kernel.empty()) {
    // Another build of the same kernel keeps what the file says of it.
    const Result<KernelName> before = parse_kernel_name(test.kernel), now = parse_kernel_name(kernel);
    const bool is_same = before.ok() && now.ok() && before->without_build() == now->without_build();
    if (!is_same) {
      test.debug_info = {};
      test.module_directory = {};
    }
    test.kernel = kernel;
    test.kernel_line = 0;
  }
  if (!module_directory.empty()) test.module_directory = {module_directory, 0};
}

const CallProgram* KernelTest::prepared(uint64_t list) const {
  if (list > flows.size()) return nullptr;
  const CallProgram& program = list == 0 ? prepare : flows[list - 1].prepare;
  return program.steps.empty() && program.data.empty() ? nullptr : &program;
}

bool is_module_file(std::string_view module) {
  const std::string_view path = module.substr(0, module.find(' '));
  return path.find('/') != std::string_view::npos || path.ends_with(".ko");
}

Result<KernelTest> parse_kernel_test(std::string_view text, const std::string& origin) {
  return Reader(text, origin).read();
}

Result<KernelTest> load_kernel_test(const std::filesystem::path& path) {
  TRY_ASSIGN(const std::vector<uint8_t> bytes, read_file(path));
  return parse_kernel_test({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

bool looks_like_kernel_test(std::string_view text) {
  // A file that is no valid TOML is judged by its [[flow]] headers.
  const bool has_flows = text.find("[[flow]]") != std::string_view::npos;
  if (!check_toml(text, "").ok()) return has_flows;
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return has_flows;
  return parsed.table().contains("flow") || parsed.table().contains("kernel");
}

}  // namespace slalom::vm
