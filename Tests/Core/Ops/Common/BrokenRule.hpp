// Tests of rule tables: each case breaks one rule, and no rule is left without a case.
#pragma once
#include <algorithm>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "Harness/Check.hpp"
#include "Support/Rule.hpp"

namespace mnk::test {

template <typename Op>
struct BrokenRule {
  std::string_view what;  // names the rule
  std::string_view got;
  std::string_view expected;
  std::string_view fix;
  void (*breakIn)(Op&);
};

// The case breaks its rule and none above it, and the error carries all four parts, word for word.
template <typename Op>
void expectBroken(std::span<const Rule<Op>> rules, const Op& op, const BrokenRule<Op>& broken, std::string_view name) {
  const Context context(fmt::format("{} (got {})", broken.what, broken.got));
  const auto checked = checkRules(rules, op, name);
  if (checked) return fail(__FILE__, __LINE__, "no rule is broken");
  const Error& error = checked.error();
  EXPECT(error.code == ErrorCode::invalidArgument);
  EXPECT(!error.retryable);
  EXPECT_EQ(error.op, name);
  EXPECT_EQ(error.what, broken.what);
  EXPECT_EQ(error.got, broken.got);
  EXPECT_EQ(error.expected, broken.expected);
  EXPECT_EQ(error.fix, broken.fix);
}

// Every rule is broken by some case, and every case names a rule.
template <typename Op>
void expectEveryRuleIsBroken(std::span<const Rule<Op>> rules, std::span<const BrokenRule<Op>> cases) {
  for (const Rule<Op>& rule : rules) {
    const bool isBroken = std::any_of(cases.begin(), cases.end(), [&](const auto& c) { return c.what == rule.what; });
    if (!isBroken) fail(__FILE__, __LINE__, fmt::format("no case breaks the rule \"{}\"", rule.what));
  }
  for (const BrokenRule<Op>& broken : cases) {
    const bool isRule = std::any_of(rules.begin(), rules.end(), [&](const auto& r) { return r.what == broken.what; });
    if (!isRule) fail(__FILE__, __LINE__, fmt::format("there is no rule \"{}\"", broken.what));
  }
}

}  // namespace mnk::test
