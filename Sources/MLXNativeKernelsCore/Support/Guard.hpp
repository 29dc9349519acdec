// Keeps exceptions inside the library: guarded runs a body that returns a Result and turns any exception into an Error.
// Nothing here throws or requires memory.
#pragma once
#include <string_view>
#include <utility>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

// Shortens the texts if there is no memory for them.
Error outOfMemory(std::string_view op, std::string_view got) noexcept;
Error unexpectedException(std::string_view op, std::string_view got) noexcept;

// Copies only the code if there is no memory for the rest.
Error copyOrCode(const Error& error) noexcept;

// The error for the exception being handled. Out of line, because callers inline all of `guarded`.
Error errorForException(std::string_view op) noexcept;

// Replaces the op of an error with `call`, if there is memory for it.
Error renamed(Error error, std::string_view call) noexcept;

template <typename Body>
auto guarded(std::string_view op, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return errorForException(op);
  }
}

// Runs the body of a call that other ops implement, so that errors name the call that the user made.
template <typename Body>
auto guardedAs(std::string_view call, Body&& body) -> decltype(body()) {
  auto result = guarded(call, std::forward<Body>(body));
  if (result) return result;
  return renamed(std::move(result).error(), call);
}

}  // namespace mnk
