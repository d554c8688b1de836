// x86_diff: compares the interpreter with the host's CPU, instruction by instruction.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "differ.h"
#include "table.h"
#include "vendor.h"

namespace {

using namespace slalom;
using namespace slalom::vm::diff;

struct Options {
  uint64_t cases = 500'000;
  uint64_t seed = 1;
  std::string form;
  bool list = false;
  std::string report;
  unsigned shown = 1;
  uint64_t at_least = 0;
  std::string mutate;
  std::vector<std::string> replay;
};

int fail(const std::string& what) {
  fmt::print(stderr, "x86_diff: {}\n", what);
  return 2;
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return error("cannot read {}", path);
  return text.str();
}

struct Forms {
  std::vector<Form> all;
  std::vector<TableLine> table;
};

Result<Forms> load_forms() {
  Forms forms{.all = all_forms(), .table = {}};
  TRY_ASSIGN(const std::string text, read_text(X86_DIFF_TABLE));
  TRY_ASSIGN(forms.table, read_table(text, forms.all));
  return forms;
}

// Prints how many cases are equal only by another vendor's rules.
void print_vendors(uint64_t cases) {
  if (!host_is_intel()) fmt::print("the host is not Intel's: {} cases differ only as vendors do\n", cases);
}

void print_counts(const Options& options, const Forms& forms, const std::vector<FormCount>& counts) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const Form& form = forms.all[i];
    if (options.list)
      fmt::print("{:8} cases {:8} near {:8} faults {:6} mismatches  {}\n", counts[i].cases, counts[i].near,
                 counts[i].faults, counts[i].mismatches, form.name);
    if (counts[i].cases == 0)
      fmt::print("no case: {}{}\n", form.name, form.excluded.empty() ? "" : " (" + form.excluded + ")");
  }
}

// Counts the forms that have fewer cases than required.
size_t count_poor(const Options& options, const Forms& forms, const std::vector<FormCount>& counts) {
  size_t poor = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!forms.all[i].excluded.empty() || counts[i].cases >= std::max<uint64_t>(options.at_least, 1))
      continue;
    ++poor;
    fmt::print("only {} cases: {}\n", counts[i].cases, forms.all[i].name);
  }
  return poor;
}

int compare_all(const Options& options, Forms forms) {
  if (!options.form.empty()) {
    const std::regex wanted(options.form);
    std::erase_if(forms.all, [&](const Form& form) { return !std::regex_search(form.name, wanted); });
    forms.table.clear();
  }
  auto differ = Differ::make(options.seed);
  if (!differ.ok()) return fail(differ.error().message);
  std::ofstream report;
  if (!options.report.empty()) report.open(options.report);
  const auto show = [&](const Mismatch& mismatch) {
    const std::string text = fmt::format("# {}\n{}\n", forms.all[mismatch.form].name,
                                         describe(mismatch.one, mismatch.differences));
    if (report.is_open())
      report << text << std::flush;
    else
      fmt::print("{}", text);
  };
  const auto result = (*differ)->run(forms.all, options.cases, options.shown, show);
  if (!result.ok()) return fail(result.error().message);

  const std::vector<FormCount>& counts = (*differ)->counts();
  print_counts(options, forms, counts);
  const size_t poor = count_poor(options, forms, counts);
  uint64_t mismatches = 0, near = 0, least = ~uint64_t{0};
  for (size_t i = 0; i < counts.size(); ++i) {
    mismatches += counts[i].mismatches;
    near += counts[i].near;
    if (forms.all[i].excluded.empty()) least = std::min(least, counts[i].cases);
  }
  const auto excluded = std::count_if(forms.all.begin(), forms.all.end(),
                                      [](const Form& form) { return !form.excluded.empty(); });
  fmt::print(
      "{} cases of {} forms ({} lines of the table among them), {} of them with changed bytes, at least {} "
      "of each form; "
      "{} forms cannot be compared; {} mismatches\n",
      (*differ)->total(), forms.all.size() - static_cast<size_t>(excluded), forms.table.size(), near, least,
      excluded, mismatches);
  print_vendors((*differ)->vendors());
  return mismatches == 0 && poor == 0 ? 0 : 1;
}

// Runs as many cases of each form as the run without mutants.
Result<uint64_t> mismatches_of(const Mutant* mutant, const Options& options, const Forms& forms,
                               const std::vector<ZydisMnemonic>& victims) {
  std::vector<Form> chosen;
  for (const Form& form : forms.all)
    if (std::find(victims.begin(), victims.end(), form.mnemonic) != victims.end()) chosen.push_back(form);
  TRY_ASSIGN(const auto differ, Differ::make(options.seed));
  differ->guest().set_mutant(mutant);
  TRY(differ->run(chosen, options.cases / forms.all.size() * chosen.size(), 0, [](const Mismatch&) {}));
  uint64_t mismatches = 0;
  for (const FormCount& count : differ->counts()) mismatches += count.mismatches;
  return mismatches;
}

int run_mutants(const Options& options, const Forms& forms) {
  size_t missed = 0, seen = 0;
  for (const Mutant& mutant : all_mutants()) {
    if (options.mutate != "all" && options.mutate != mutant.name) continue;
    ++seen;
    const auto healthy = mismatches_of(nullptr, options, forms, mutant.victims);
    if (!healthy.ok()) return fail(healthy.error().message);
    const auto broken = mismatches_of(&mutant, options, forms, mutant.victims);
    if (!broken.ok()) return fail(broken.error().message);
    const bool caught = *healthy == 0 && *broken > 0;
    missed += !caught;
    fmt::print("{:24} {:16} {:8} mismatches, {} without it: {}\n", mutant.name, mutant.what, *broken,
               *healthy, caught ? "caught" : "MISSED");
  }
  if (seen == 0) return fail(fmt::format("there is no mutant {}; 'all' runs all of them", options.mutate));
  fmt::print("{} of {} mutants caught\n", seen - missed, seen);
  return missed == 0 ? 0 : 1;
}

int replay(const Options& options) {
  std::vector<std::string> files;
  for (const std::string& path : options.replay) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  auto differ = Differ::make(options.seed);
  if (!differ.ok()) return fail(differ.error().message);
  size_t wrong = 0, vendors = 0;
  for (const std::string& file : files) {
    const auto text = read_text(file);
    if (!text.ok()) return fail(text.error().message);
    const auto one = parse_case(*text);
    if (!one.ok()) return fail(fmt::format("{}: {}", file, one.error().message));
    const auto verdict = (*differ)->check(*one);
    if (!verdict.ok()) return fail(verdict.error().message);
    vendors += verdict->vendors;
    if (verdict->differences.empty()) continue;
    ++wrong;
    fmt::print("{}\n{}\n", file, describe(*one, verdict->differences));
  }
  fmt::print("{} cases replayed, {} mismatches\n", files.size(), wrong);
  print_vendors(vendors);
  return wrong == 0 && !files.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares slalom's interpreter with the CPU it runs on");
  Options options;
  app.add_option("--cases", options.cases, "how many");
  app.add_option("--seed", options.seed, "of all that is random");
  app.add_option("--form", options.form, "only forms whose name matches this regular expression");
  app.add_flag("--list", options.list, "all forms with their counts");
  app.add_option("--report", options.report, "a file for the mismatches");
  app.add_option("--shown", options.shown, "mismatches to show for each form");
  app.add_option("--at-least", options.at_least, "fail if a form has fewer cases");
  app.add_option("--mutate", options.mutate, "break the interpreter in this way, or in 'all' ways in turn");
  app.add_option("--replay", options.replay, "cases to run instead: files, or directories of *.case files");
  CLI11_PARSE(app, argc, argv);
  if (!options.replay.empty()) return replay(options);
  auto forms = load_forms();
  if (!forms.ok()) return fail(forms.error().message);
  return options.mutate.empty() ? compare_all(options, *std::move(forms)) : run_mutants(options, *forms);
}
