// How errors are made and passed on: texts, MNK_TRY, guards against exceptions, and tables of rules.
#pragma once
#if !__has_include(<fmt/core.h>)
#error "fmt is missing: `apt install libfmt-dev` on Linux, `git submodule update --init` on Apple platforms"
#endif
#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Result.hpp"

// MNK_TRY(expression) returns the error of a Result if it has one.
// MNK_TRY(auto name, expression) also does so; otherwise it declares a variable with the Result's value.
#define MNK_TRY(...) MNK_TRY_CHOOSE(__VA_ARGS__, MNK_TRY_VALUE, MNK_TRY_CHECK)(__VA_ARGS__)

#define MNK_TRY_CHOOSE(first, second, chosen, ...) chosen
#define MNK_TRY_CHECK(expression)                                                       \
  do {                                                                                  \
    if (auto mnkResult = (expression); !mnkResult) return std::move(mnkResult).error(); \
  } while (false)
#define MNK_TRY_VALUE(variable, expression) MNK_TRY_VALUE_NUMBERED(__LINE__, variable, expression)
#define MNK_TRY_VALUE_NUMBERED(line, variable, expression) MNK_TRY_VALUE_AT(line, variable, expression)
#define MNK_TRY_VALUE_AT(line, variable, expression) MNK_TRY_VALUE_IN(mnkResult##line, variable, expression)
#define MNK_TRY_VALUE_IN(result, variable, expression) \
  auto result = (expression);                          \
  if (!result) return std::move(result).error();       \
  variable = *std::move(result)

namespace mnk {

std::string bytesText(uint64_t bytes);                         // "512 bytes", "8.0 KB", "1.1 MB"
std::string secondsText(double seconds);                       // "41 µs", "3.2 ms"
std::string countText(uint64_t count, std::string_view noun);  // "1 barrier", "2 barriers"

// "one of a, b, c, …" for a message about an unknown name; `none` if the list is empty.
std::string oneOf(const std::vector<std::string>& names, std::string_view none);

// The name of an enumerator, from a table in the order of the enumerators.
template <size_t N>
std::string_view nameIn(const std::string_view (&names)[N], size_t number, std::string_view unknown) {
  return number < N ? names[number] : unknown;
}

Error makeError(ErrorCode code, std::string_view op, std::string_view what, std::string_view got,
                std::string_view expected, std::string_view fix, bool retryable = false);
Error invalidArgument(std::string_view op, std::string_view what, std::string_view got, std::string_view expected,
                      std::string_view fix);

// Keeps exceptions inside the library: guarded runs a body that returns a Result and turns any exception into an Error.
// Nothing here throws or requires memory.

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

// An op's rules form a table that is checked from top to bottom. The first broken rule becomes the error, so a rule may
// rely on those above it.
struct Mismatch {
  std::string got;
  std::string expected;
};

template <typename Op>
struct Rule {
  std::string_view what;  // the error text
  std::string_view fix;
  std::optional<Mismatch> (*mismatch)(const Op&);  // empty if the rule holds
};

// Out of line, so that the many rows stay small.
std::optional<Mismatch> mismatch(std::string_view got, std::string_view expected);

// A row of a rule table. `op` is the checked object; got and expected are evaluated only if the condition is true,
// which means that the op is invalid.
#define INVALID_IF(condition, what, got, expected, fix)        \
  {                                                            \
    what, fix, [](const auto& op) -> std::optional<Mismatch> { \
      if (!(condition)) return std::nullopt;                   \
      return mismatch(got, expected);                          \
    }                                                          \
  }

// Returns the error of the first broken rule.
template <typename Op>
Result<void> checkRules(std::span<const Rule<Op>> rules, const Op& op, std::string_view name) {
  for (const Rule<Op>& rule : rules) {
    const auto mismatch = rule.mismatch(op);
    if (mismatch) return invalidArgument(name, rule.what, mismatch->got, mismatch->expected, rule.fix);
  }
  return {};
}

template <typename Op>
std::vector<Rule<Op>> joined(std::initializer_list<std::span<const Rule<Op>>> tables) {
  std::vector<Rule<Op>> all;
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace mnk
