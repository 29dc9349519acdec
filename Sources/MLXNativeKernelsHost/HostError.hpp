// An error of the Host device itself.
#pragma once
#include <string>

#include "MLXNativeKernels/Result.hpp"

namespace mnk::host {

inline Error hostError(ErrorCode code, std::string what, std::string got, std::string expected, std::string fix) {
  return Error{.code = code,
               .op = "Host device",
               .what = std::move(what),
               .got = std::move(got),
               .expected = std::move(expected),
               .fix = std::move(fix)};
}

}  // namespace mnk::host
