// Calls on one cache through the C API, in encoders that are committed or dropped: appends, attends and copies with
// lists and views of any layout, and cuts. A model says where sequences must stand after each of them.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "Target.hpp"

namespace mnk::fuzz {

std::unique_ptr<Case> makeCacheProgram(Arena& arena, Seeded& random);
// What errors of its calls say.
std::vector<std::string_view> cacheProgramRefusals();

}  // namespace mnk::fuzz
