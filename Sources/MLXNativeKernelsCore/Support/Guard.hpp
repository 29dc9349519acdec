// Keeps exceptions of the standard library inside: guarded runs a body that gives a Result and turns whatever
// escapes it into an Error.
#pragma once
#include <exception>
#include <new>
#include <string>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

inline Error outOfMemory(std::string_view op, std::string got) {
  return {.code = ErrorCode::outOfMemory,
          .op = std::string(op),
          .what = "memory ran out",
          .got = std::move(got),
          .expected = "free memory",
          .fix = "Free memory, or ask for less.",
          .retryable = true};
}

// Where there is no memory for all of it: its code.
inline Error copyOrCode(const Error& error) noexcept {
  try {
    return error;
  } catch (...) {
    return {.code = error.code,
            .op = "Device",
            .what = "work failed",
            .got = {},
            .expected = {},
            .fix = {},
            .retryable = error.retryable};
  }
}

template <typename Body>
auto guarded(std::string_view op, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return outOfMemory(op, "a failed allocation");
  } catch (const std::exception& exception) {
    return Error{.code = ErrorCode::deviceFault,
                 .op = std::string(op),
                 .what = "an unexpected exception was stopped",
                 .got = exception.what(),
                 .expected = "none",
                 .fix = "This is a bug in MLXNativeKernels; please report it with this text."};
  } catch (...) {  // on Apple's systems also an NSException, which has no C++ type
    return Error{.code = ErrorCode::deviceFault,
                 .op = std::string(op),
                 .what = "an unexpected exception was stopped",
                 .got = "an exception that is not of C++",
                 .expected = "none",
                 .fix = "This is a bug in MLXNativeKernels; please report it."};
  }
}

// Runs the body of a call that other ops carry out: their errors name the call that the user made.
template <typename Body>
auto guardedAs(std::string_view call, Body&& body) -> decltype(body()) {
  auto result = guarded(call, std::forward<Body>(body));
  if (result) return result;
  Error error = std::move(result).error();
  error.op = call;
  return error;
}

}  // namespace mnk
