// Shaders/Common/TurboTables.h and CodeGuesses.h as text.
#pragma once
#include <string>

namespace mnk::tables {

std::string turboTables();
std::string codeGuesses();

}  // namespace mnk::tables
