// Shaders/Lib/TurboTables.h as text.
#pragma once
#include <string>

namespace mnk::tables {

std::string turboTables();

}  // namespace mnk::tables
