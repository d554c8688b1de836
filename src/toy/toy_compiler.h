// Compiles syntax to instructions. A program's declarations must be complete before its first block is
// compiled. Each block then adds to the program's code. Problems name a line of the block.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "toy/toy_parser.h"
#include "toy/toy_program.h"

namespace slalom {

// Appends the code of program.blocks[block].
std::optional<ToyDiagnostic> compile_toy_block(ToyProgram& program, uint32_t block,
                                               const std::vector<ToyStmt>& statements);

}  // namespace slalom
