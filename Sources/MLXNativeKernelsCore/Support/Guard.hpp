// Keeps exceptions of the standard library inside: guarded runs a body that gives a Result and turns whatever
// escapes it into an Error. Nothing here throws, and nothing needs memory where there is none.
#pragma once
#include <string_view>
#include <utility>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

// With shorter texts where there is no memory for all of them.
Error outOfMemory(std::string_view op, std::string_view got) noexcept;
Error unexpectedException(std::string_view op, std::string_view got) noexcept;

// Where there is no memory for all of it: its code.
Error copyOrCode(const Error& error) noexcept;

// The error for the exception that is being handled. Out of line, because callers inline all of `guarded`.
Error errorForException(std::string_view op) noexcept;

// The op of a call that failed becomes `call`, where there is memory for that.
Error renamed(Error error, std::string_view call) noexcept;

template <typename Body>
auto guarded(std::string_view op, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return errorForException(op);
  }
}

// Runs the body of a call that other ops carry out: their errors name the call that the user made.
template <typename Body>
auto guardedAs(std::string_view call, Body&& body) -> decltype(body()) {
  auto result = guarded(call, std::forward<Body>(body));
  if (result) return result;
  return renamed(std::move(result).error(), call);
}

}  // namespace mnk
