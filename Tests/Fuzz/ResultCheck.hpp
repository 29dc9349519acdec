// Checks errors: complete in all parts, and the one that was expected.
#pragma once
#include <string>
#include <string_view>

#include "Target.hpp"

namespace mnk::fuzz {

// Whether an error has all of its parts; else what is wrong with it.
std::string problemWith(const mnk_error* error);

// The outcome of a call that must be refused with `expected`, or accepted where that is empty.
Verdict checkResult(const test::Caught& caught, bool isAccepted, std::string_view expected);

}  // namespace mnk::fuzz
