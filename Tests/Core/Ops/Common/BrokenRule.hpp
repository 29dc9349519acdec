// Tests of rule tables: each case breaks one rule, and no rule is left without a case.
#pragma once
#include <functional>
#include <set>
#include <span>
#include <string>

#include "Harness/Check.hpp"
#include "Harness/Golden.hpp"
#include "Support/Rule.hpp"

namespace mnk::test {

// Changes a valid op so that it breaks a rule and none above it.
template <typename Op>
using Break = std::function<void(Op&)>;

// `plan` makes a plan of a broken op and must report the same.
template <typename Op, typename Plan>
void expectRules(ErrorLines& errors, std::span<const Rule<Op>> rules, std::string_view name, const Op& valid,
                 std::span<const Break<Op>> cases, const Plan& plan) {
  EXPECT(bool(checkRules(rules, valid, name)));
  std::set<std::string, std::less<>> broken;
  for (const Break<Op>& breakIn : cases) {
    const Context context(fmt::format("case {}", &breakIn - cases.data()));
    Op op = valid;
    breakIn(op);
    const auto checked = checkRules(rules, op, name);
    if (checked) return fail(__FILE__, __LINE__, "no rule is broken");
    const Error& error = checked.error();
    EXPECT(error.code == ErrorCode::invalidArgument && !error.retryable);
    EXPECT_EQ(error.op, name);
    EXPECT_ERROR(plan(op), {.op = name, .what = error.what, .got = error.got, .expected = error.expected});
    errors.add(error);
    broken.insert(error.what);
  }
  for (const Rule<Op>& rule : rules) {
    if (!broken.contains(rule.what)) fail(__FILE__, __LINE__, fmt::format("no case breaks \"{}\"", rule.what));
  }
}

}  // namespace mnk::test
