// A test registers itself and reports failures with file and line:
//   TEST(HazardTracker, ReadAfterWriteNeedsABarrier) { EXPECT(tracker.conflicts(…)); EXPECT_EQ(got, expected); }
// REQUIRE takes a Result and returns its value; without a value it ends the test. This harness exists because XCTest
// tests cannot be written in C++ on Linux; one runner (swift test) runs everything.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

struct Test {
  const char* suite;
  const char* name;
  void (*run)();
  Test(const char* suite, const char* name, void (*run)());
};

// Runs a check after each test; the strings it returns are failures of that test.
struct AfterEachTest {
  explicit AfterEachTest(std::vector<std::string> (*check)());
};

struct Stop {};  // thrown by a failed requirement, caught by the runner

void fail(const char* file, int line, const std::string& message);
// Returns and clears the failures of this thread.
std::string takeFailures();
// Text that prefixes every failure inside the scope, such as a case's name.
class Context {
 public:
  explicit Context(std::string text);
  ~Context();
};

template <typename T>
std::string show(const T& value) {
  if constexpr (std::is_same_v<T, Shape>) {
    return value.text();
  } else if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<long long>(value));
  } else if constexpr (std::is_pointer_v<T> && !std::is_convertible_v<T, std::string_view>) {
    return fmt::format("{}", static_cast<const void*>(value));
  } else {
    return fmt::format("{}", value);
  }
}

template <typename A, typename B>
void expectEqual(const char* file, int line, const char* text, const A& got, const B& expected) {
  if (!(got == expected)) fail(file, line, fmt::format("{}: got {}, expected {}", text, show(got), show(expected)));
}

template <typename T>
T require(const char* file, int line, const char* text, Result<T> result) {
  if (!result) {
    fail(file, line, fmt::format("{}: {}", text, result.error().message()));
    throw Stop{};
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// The expected parts of an error. An empty part is not compared; others must occur in the actual part.
struct ExpectedError {
  ErrorCode code = ErrorCode::invalidArgument;
  std::string_view op{}, what{}, got{}, expected{}, fix{};
};
void expectError(const char* file, int line, const char* text, const Error* error, const ExpectedError& expected);
template <typename T>
const Error* errorOf(const Result<T>& result) {
  return result ? nullptr : &result.error();
}

}  // namespace mnk::test

#define TEST(suite, name)                                                                      \
  static void suite##_##name();                                                                \
  static const ::mnk::test::Test suite##_##name##_registration(#suite, #name, suite##_##name); \
  static void suite##_##name()
#define EXPECT(...) ((__VA_ARGS__) ? void() : ::mnk::test::fail(__FILE__, __LINE__, "not true: " #__VA_ARGS__))
#define EXPECT_EQ(got, ...) ::mnk::test::expectEqual(__FILE__, __LINE__, #got, got, __VA_ARGS__)
#define REQUIRE(...) ::mnk::test::require(__FILE__, __LINE__, #__VA_ARGS__, __VA_ARGS__)
#define EXPECT_ERROR(result, ...)                                                     \
  ::mnk::test::expectError(__FILE__, __LINE__, #result, ::mnk::test::errorOf(result), \
                           ::mnk::test::ExpectedError __VA_ARGS__)
