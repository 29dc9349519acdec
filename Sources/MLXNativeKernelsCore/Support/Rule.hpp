// An op's rules form a table that is checked from top to bottom. The first broken rule becomes the error, so a rule may
// rely on those above it.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

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
Error brokenRule(std::string_view name, std::string_view what, Mismatch mismatch, std::string_view fix);

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
    auto mismatch = rule.mismatch(op);
    if (!mismatch) continue;
    return brokenRule(name, rule.what, std::move(*mismatch), rule.fix);
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
