#include "Support/Guard.hpp"

#include <exception>
#include <new>
#include <string>

namespace mnk {

namespace {

// The first 15 characters, which every standard library stores inside the string object.
std::string inPlace(std::string_view text) noexcept {
  return std::string(text.substr(0, 15));
}

// The op of a call such as "AttentionCache.append".
std::string opInPlace(std::string_view op) noexcept {
  return inPlace(op.substr(0, op.find('.')));
}

}  // namespace

Error outOfMemory(std::string_view op, std::string_view got) noexcept {
  try {
    return {.code = ErrorCode::outOfMemory,
            .op = std::string(op),
            .what = "memory ran out",
            .got = std::string(got),
            .expected = "free memory",
            .fix = "Free memory, or ask for less.",
            .retryable = true};
  } catch (...) {
    return {.code = ErrorCode::outOfMemory,
            .op = opInPlace(op),
            .what = inPlace("memory ran out"),
            .got = inPlace("an allocation"),
            .expected = inPlace("free memory"),
            .fix = inPlace("Free memory."),
            .retryable = true};
  }
}

Error unexpectedException(std::string_view op, std::string_view got) noexcept {
  try {
    return {
        .code = ErrorCode::deviceFault,
        .op = std::string(op),
        .what = "an unexpected exception was stopped",
        .got = std::string(got),
        .expected = "none",
        .fix =
            "Catch what a function of your own throws; anything else is a bug in MLXNativeKernels: please report it."};
  } catch (...) {
    return outOfMemory(op, "an exception");
  }
}

Error copyOrCode(const Error& error) noexcept {
  try {
    return error;
  } catch (...) {
    return {.code = error.code,
            .op = opInPlace(error.op),
            .what = inPlace(error.code == ErrorCode::outOfMemory ? "memory ran out" : "work failed"),
            .got = {},
            .expected = {},
            .fix = {},
            .retryable = error.retryable};
  }
}

Error errorForException(std::string_view op) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return outOfMemory(op, "a failed allocation");
  } catch (const std::exception& exception) {
    return unexpectedException(op, exception.what());
  } catch (...) {  // on Apple's systems also an NSException, which has no C++ type
    return unexpectedException(op, "an exception that is not a std::exception");
  }
}

Error renamed(Error error, std::string_view call) noexcept {
  try {
    error.op = call;
  } catch (...) {  // keep the name of the op that implements the call
  }
  return error;
}

}  // namespace mnk
