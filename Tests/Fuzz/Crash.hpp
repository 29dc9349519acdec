// Names the running case when the process dies under it: by a signal, or by a sanitizer's report.
#pragma once
#include <cstdint>
#include <string_view>

namespace mnk::fuzz {

void nameCaseOnCrash();
// The case of this thread, from now on.
void enterCase(std::string_view target, uint64_t seed, uint64_t number);
void leaveCases();

}  // namespace mnk::fuzz
