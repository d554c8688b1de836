#include "toy/toy_file.h"

#define TOML_EXCEPTIONS 0
// For a malformed table header, toml++ fails an assertion before it reports the error.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <utility>
#include <vector>

#include "base/toml_check.h"
#include "toy/toy_arithmetic.h"
#include "toy/toy_builder.h"

namespace slalom {
namespace {

struct Entry {
  std::string name;
  const toml::node* node = nullptr;
};

class Reader {
 public:
  Reader(std::string_view text, std::string origin, const ToySettings& settings)
      : text_(text), origin_(std::move(origin)), settings_(settings) {}

  Result<ToyProgram> read() {
    TRY(check_toml(text_, origin_));
    const toml::parse_result parsed = toml::parse(text_);
    if (!parsed)
      return error("{}:{}: {}", origin_, parsed.error().source().begin.line, parsed.error().description());
    const toml::table& root = parsed.table();
    TRY(only_keys(
        root, "the file",
        {"name", "about", "params", "shared", "sync", "thread", "interrupt", "timer", "final", "expect"}));
    TRY_ASSIGN(const std::string name, text_of(root, "name", "toy"));
    TRY_ASSIGN(const std::string about, text_of(root, "about", ""));
    builder_ = ToyBuilder(name, about);
    TRY(read_params(root));
    TRY(for_each(root, "shared", [&](const Entry& entry) { return read_shared(entry); }));
    TRY(for_each(root, "sync", [&](const Entry& entry) { return read_sync(entry); }));
    TRY(for_each_block(root, "thread", [&](const toml::table& table) { return read_thread(table); }));
    TRY(for_each_block(root, "interrupt", [&](const toml::table& table) { return read_interrupt(table); }));
    TRY(for_each_block(root, "timer", [&](const toml::table& table) { return read_timer(table); }));
    TRY(read_final(root));
    TRY(read_expect(root));
    Result<ToyProgram> program = builder_.build();
    if (program.ok() || program.error().message.starts_with(origin_ + ":")) return program;
    return error("{}: {}", origin_, program.error().message);
  }

 private:
  template <typename... Args>
  Error wrong(const toml::node& node, fmt::format_string<Args...> format, Args&&... args) const {
    return error("{}:{}: {}", origin_, line_of(node), fmt::format(format, std::forward<Args>(args)...));
  }
  static int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

  Result<void> only_keys(const toml::table& table, std::string_view where,
                         std::initializer_list<std::string_view> known) const {
    for (const Entry& entry : entries(table)) {
      if (std::find(known.begin(), known.end(), entry.name) != known.end()) continue;
      return wrong(*entry.node, "unknown key `{}` in {}; it may have: {}", entry.name, where,
                   fmt::join(known, ", "));
    }
    return {};
  }

  // Returns the entries in the order of the file, which a toml::table does not keep.
  static std::vector<Entry> entries(const toml::table& table) {
    std::vector<Entry> result;
    for (const auto& [key, node] : table) result.push_back({std::string(key.str()), &node});
    std::sort(result.begin(), result.end(), [](const Entry& a, const Entry& b) {
      const auto position = [](const Entry& entry) {
        return std::pair(entry.node->source().begin.line, entry.node->source().begin.column);
      };
      return position(a) < position(b);
    });
    return result;
  }

  template <typename Read>
  Result<void> for_each(const toml::table& root, std::string_view key, Read read) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return {};
    if (!node->is_table()) return wrong(*node, "`{}` must be a table: write [{}]", key, key);
    for (const Entry& entry : entries(*node->as_table())) TRY(read(entry));
    return {};
  }

  template <typename Read>
  Result<void> for_each_block(const toml::table& root, std::string_view key, Read read) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return {};
    if (!node->is_array_of_tables())
      return wrong(*node, "`{}` must be a list of tables: write [[{}]]", key, key);
    for (const toml::node& block : *node->as_array()) TRY(read(*block.as_table()));
    return {};
  }

  Result<std::string> text_of(const toml::table& table, std::string_view key,
                              std::optional<std::string> otherwise) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (otherwise) return *otherwise;
      return wrong(table, "`{}` is missing: write {} = \"...\"", key, key);
    }
    const auto value = node->value_exact<std::string>();
    if (!value) return wrong(*node, "`{}` must be a text in quotes", key);
    return *value;
  }

  // Reads a number, or a text with an expression of numbers and parameters.
  Result<int64_t> number(const toml::node& node, std::string_view what) const {
    if (const auto value = node.value_exact<int64_t>()) return *value;
    const auto text = node.value_exact<std::string>();
    if (!text) return wrong(node, "{} must be a number or an expression in quotes", what);
    const Result<int64_t> value = evaluate_toy_constant(*text, builder_.params());
    if (!value) return wrong(node, "{}: {}", what, value.error().message);
    return *value;
  }
  Result<int64_t> number_of(const toml::table& table, std::string_view key, int64_t otherwise) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    return number(*node, fmt::format("`{}`", key));
  }
  Result<std::optional<int64_t>> size_of(const toml::table& table) const {
    if (!table.contains("size")) return std::optional<int64_t>();
    TRY_ASSIGN(const int64_t size, number_of(table, "size", 1));
    return std::optional(size);
  }
  Result<bool> flag_of(const toml::table& table, std::string_view key, bool otherwise) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value_exact<bool>();
    if (!value) return wrong(*node, "`{}` must be true or false", key);
    return *value;
  }

  // Code in a multi-line text begins on the line after the quotes.
  Result<ToyCode> code_of(const toml::table& table, std::string_view key) const {
    TRY_ASSIGN(std::string code, text_of(table, key, std::nullopt));
    const auto begin = table.get(key)->source().begin;
    std::string_view rest = text_;
    for (uint32_t line = 1; line < begin.line; ++line)
      rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
    rest = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min<size_t>(begin.column - 1, rest.size()));
    const bool below = rest.starts_with("\"\"\"") || rest.starts_with("'''");
    const bool blank = rest.find_first_not_of(" \t\r", 3) == std::string_view::npos;
    return ToyCode(std::move(code), origin_, static_cast<int>(begin.line) + (below && blank ? 1 : 0));
  }

  Result<void> read_params(const toml::table& root) {
    std::vector<std::string> known;
    TRY(for_each(root, "params", [&](const Entry& entry) -> Result<void> {
      const auto value = entry.node->value_exact<int64_t>();
      if (!value) return wrong(*entry.node, "parameter `{}` must be a number", entry.name);
      const auto setting = settings_.find(entry.name);
      builder_.param(entry.name, setting == settings_.end() ? *value : setting->second);
      known.push_back(entry.name);
      return {};
    }));
    for (const auto& [name, value] : settings_) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      if (known.empty()) return error("{}: there is no parameter `{}`: the program has none", origin_, name);
      return error("{}: there is no parameter `{}`; the program has: {}", origin_, name,
                   fmt::join(known, ", "));
    }
    return {};
  }

  Result<void> read_shared(const Entry& entry) {
    ToySharedOptions options;
    if (const toml::table* table = entry.node->as_table()) {
      TRY(only_keys(*table, fmt::format("shared variable `{}`", entry.name),
                    {"init", "size", "atomic", "persistent"}));
      TRY_ASSIGN(options.init, number_of(*table, "init", 0));
      TRY_ASSIGN(options.size, size_of(*table));
      TRY_ASSIGN(options.atomic, flag_of(*table, "atomic", false));
      TRY_ASSIGN(options.persistent, flag_of(*table, "persistent", false));
    } else {
      TRY_ASSIGN(options.init, number(*entry.node, fmt::format("shared variable `{}`", entry.name)));
    }
    builder_.shared(entry.name, options);
    return {};
  }

  Result<void> read_sync(const Entry& entry) {
    static constexpr std::array<std::pair<std::string_view, ToySyncKind>, 5> kKinds = {{
        {"mutex", ToySyncKind::Mutex},
        {"rwlock", ToySyncKind::RwLock},
        {"condvar", ToySyncKind::Condvar},
        {"semaphore", ToySyncKind::Semaphore},
        {"barrier", ToySyncKind::Barrier},
    }};
    ToySyncOptions options;
    std::string kind;
    const toml::table* table = entry.node->as_table();
    if (table != nullptr) {
      TRY_ASSIGN(kind, text_of(*table, "kind", std::nullopt));
      TRY_ASSIGN(options.size, size_of(*table));
    } else {
      kind = entry.node->value_exact<std::string>().value_or("");
    }
    const auto found =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& item) { return item.first == kind; });
    if (found == kKinds.end())
      return wrong(*entry.node,
                   "`{}` must be a mutex, rwlock, condvar, semaphore or barrier, such as {} = \"mutex\"",
                   entry.name, entry.name);
    const std::string what = fmt::format("{} `{}`", kind, entry.name);
    if (found->second == ToySyncKind::Barrier) {
      if (table == nullptr || !table->contains("parties"))
        return wrong(*entry.node, "a barrier needs its parties: {} = {{ kind = \"barrier\", parties = 2 }}",
                     entry.name);
      TRY(only_keys(*table, what, {"kind", "size", "parties"}));
      TRY_ASSIGN(options.count, number_of(*table, "parties", 1));
    } else if (table != nullptr && found->second == ToySyncKind::Semaphore) {
      TRY(only_keys(*table, what, {"kind", "size", "count"}));
      TRY_ASSIGN(options.count, number_of(*table, "count", 0));
    } else if (table != nullptr) {
      TRY(only_keys(*table, what, {"kind", "size"}));
    }
    builder_.sync(entry.name, found->second, options);
    return {};
  }

  Result<void> read_thread(const toml::table& table) {
    TRY(only_keys(table, "[[thread]]", {"name", "copies", "start", "code"}));
    TRY_ASSIGN(std::string name, text_of(table, "name", std::nullopt));
    ToyThreadOptions options;
    TRY_ASSIGN(options.copies, number_of(table, "copies", 1));
    TRY_ASSIGN(options.start, flag_of(table, "start", true));
    TRY_ASSIGN(ToyCode code, code_of(table, "code"));
    builder_.thread(std::move(name), std::move(code), options);
    return {};
  }

  Result<void> read_interrupt(const toml::table& table) {
    TRY(only_keys(table, "[[interrupt]]", {"name", "on", "times", "code"}));
    TRY_ASSIGN(std::string name, text_of(table, "name", std::nullopt));
    TRY_ASSIGN(std::string on, text_of(table, "on", std::nullopt));
    TRY_ASSIGN(const int64_t times, number_of(table, "times", 1));
    TRY_ASSIGN(ToyCode code, code_of(table, "code"));
    builder_.interrupt(std::move(name), std::move(on), std::move(code), times);
    return {};
  }

  Result<void> read_timer(const toml::table& table) {
    TRY(only_keys(table, "[[timer]]", {"name", "code"}));
    TRY_ASSIGN(std::string name, text_of(table, "name", std::nullopt));
    TRY_ASSIGN(ToyCode code, code_of(table, "code"));
    builder_.timer(std::move(name), std::move(code));
    return {};
  }

  Result<void> read_final(const toml::table& root) {
    const toml::node* node = root.get("final");
    if (node == nullptr) return {};
    const toml::table* table = node->as_table();
    if (table == nullptr) return wrong(*node, "`final` must be a table: write [final]");
    TRY(only_keys(*table, "[final]", {"check", "message"}));
    TRY_ASSIGN(ToyCode check, code_of(*table, "check"));
    TRY_ASSIGN(std::string message, text_of(*table, "message", ""));
    builder_.final_check(std::move(check), std::move(message));
    return {};
  }

  Result<void> read_expect(const toml::table& root) {
    if (!root.contains("expect")) return {};
    std::vector<std::string> kinds;
    std::vector<std::string> titles;
    TRY(for_each(root, "expect", [&](const Entry& entry) -> Result<void> {
      if (entry.name != "kinds" && entry.name != "titles")
        return wrong(*entry.node, "unknown key `{}` in [expect]; it may have: kinds, titles", entry.name);
      const toml::array* list = entry.node->as_array();
      if (list == nullptr) return wrong(*entry.node, "`{}` must be a list of texts", entry.name);
      for (const toml::node& item : *list) {
        const auto text = item.value_exact<std::string>();
        if (!text) return wrong(item, "`{}` must be a list of texts", entry.name);
        (entry.name == "kinds" ? kinds : titles).push_back(*text);
      }
      return {};
    }));
    builder_.expect(std::move(kinds), std::move(titles));
    return {};
  }

  std::string_view text_;
  std::string origin_;
  const ToySettings& settings_;
  ToyBuilder builder_;
};

}  // namespace

Result<ToyProgram> load_toy_file(const std::string& path, const ToySettings& settings) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) return error("cannot read {}: check that the file exists and may be read", path);
  return parse_toy(text.str(), path, settings);
}

Result<ToyProgram> parse_toy(std::string_view text, const std::string& origin, const ToySettings& settings) {
  return Reader(text, origin, settings).read();
}

}  // namespace slalom
