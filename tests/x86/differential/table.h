// The table of forms that real kernels and programs use (forms.txt).
#pragma once

#include <string_view>

#include "base/result.h"
#include "forms.h"

namespace slalom::vm::diff {

struct TableLine {
  std::string text;
  size_t form = 0;  // index of the form
};

// Finds the form of each line. A line with a prefix that makes no form of its own (a segment, 67) adds a
// form.
Result<std::vector<TableLine>> read_table(std::string_view text, std::vector<Form>& forms);

}  // namespace slalom::vm::diff
