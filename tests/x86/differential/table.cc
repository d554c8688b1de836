#include "table.h"

#include <fmt/format.h>

#include <sstream>

namespace slalom::vm::diff {
namespace {

struct Wanted {
  Form form;  // its mode, prefixes and code
  std::string operands;
};

Result<Wanted> parse_line(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  Wanted wanted;
  words >> word;
  if (word != "64" && word != "32") return error("a form's mode is 64 or 32, in '{}'", line);
  wanted.form.mode = word == "64" ? Mode::k64 : Mode::k32;
  while (words >> word) {
    Form& form = wanted.form;
    if (word == "fs:" || word == "gs:")
      form.segment = word == "fs:" ? 0x64 : 0x65;
    else if (word == "lock")
      form.lock = true;
    else if (word == "66")
      form.operand_size = true;
    else if (word == "67")
      form.address_size = true;
    else if (word == "f2" || word == "f3")
      form.repeat = word == "f2" ? 0xf2 : 0xf3;
    else if (word == "W")
      form.wide = true;
    else
      break;
  }
  wanted.form.code = word;
  words >> wanted.operands;
  return wanted;
}

bool names_memory(const std::string& operands) {
  for (size_t i = 0; i + 1 < operands.size(); ++i)
    if (operands[i] == 'm' && (i == 0 || operands[i - 1] == ',') && operands[i + 1] >= '0' &&
        operands[i + 1] <= '9')
      return true;
  return false;
}

bool same_place(const Wanted& wanted, const Form& form) {
  const Form& w = wanted.form;
  // The table and Zydis sometimes disagree whether fields of ModRM are part of the opcode.
  const bool same_code = w.code == form.code || form.code.starts_with(w.code + "(") ||
                         w.code.starts_with(form.code + "(") || w.code.starts_with(form.code + "/");
  return w.mode == form.mode && w.lock == form.lock && same_code &&
         (!form.has_modrm || form.memory == names_memory(wanted.operands));
}

// All prefixes, or only those that make a difference.
size_t find(const Wanted& wanted, const std::vector<Form>& forms) {
  const Form& w = wanted.form;
  for (const bool exactly : {true, false})
    for (size_t i = 0; i < forms.size(); ++i) {
      const Form& form = forms[i];
      if (form.segment != 0 || form.address_size || !same_place(wanted, form)) continue;
      if (exactly ? form.operand_size == w.operand_size && form.repeat == w.repeat && form.wide == w.wide
                  : form.operand_size <= w.operand_size && (form.repeat == 0 || form.repeat == w.repeat) &&
                        form.wide <= w.wide)
        return i;
    }
  return forms.size();
}

}  // namespace

Result<std::vector<TableLine>> read_table(std::string_view text, std::vector<Form>& forms) {
  std::vector<TableLine> lines;
  std::istringstream in{std::string(text)};
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    TRY_ASSIGN(const Wanted wanted, parse_line(line));
    size_t at = find(wanted, forms);
    if (at == forms.size()) return error("no instruction has the form '{}'", line);
    if (wanted.form.segment != 0 || wanted.form.address_size) {
      Form variant = forms[at];
      variant.segment = wanted.form.segment;
      variant.address_size = wanted.form.address_size;
      variant.name = fmt::format("{} {}", variant.name.substr(0, 2), line.substr(3));
      at = forms.size();
      forms.push_back(std::move(variant));
    }
    lines.push_back({line, at});
  }
  return lines;
}

}  // namespace slalom::vm::diff
