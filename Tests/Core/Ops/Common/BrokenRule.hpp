// Tests of rule tables: each case breaks one rule, and no rule is left without a case.
#pragma once
#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "Harness/Check.hpp"
#include "Harness/Golden.hpp"
#include "Support/Errors.hpp"

namespace mnk::test {

// Changes a valid op so that it breaks a rule and none above it.
template <typename Op>
using Break = std::function<void(Op&)>;

template <typename... Ops>
std::vector<std::string_view> textsOf(std::span<const Rule<Ops>>... rules) {
  std::vector<std::string_view> texts;
  const auto add = [&](const auto& table) {
    for (const auto& rule : table) texts.push_back(rule.what);
  };
  (add(rules), ...);
  return texts;
}

// Expects that each case breaks a rule with one of these texts, and that each text has a case. `plan` makes a plan of a
// broken op.
template <typename Op, typename Plan>
void expectRules(ErrorLines& errors, const std::vector<std::string_view>& texts, std::string_view name, const Op& valid,
                 std::span<const Break<Op>> cases, const Plan& plan) {
  std::set<std::string, std::less<>> broken;
  for (const Break<Op>& breakIn : cases) {
    const Context context(fmt::format("case {}", &breakIn - cases.data()));
    Op op = valid;
    breakIn(op);
    const auto planned = plan(op);
    if (planned) return fail(__FILE__, __LINE__, "no rule is broken");
    const Error& error = planned.error();
    EXPECT(error.code == ErrorCode::invalidArgument && !error.retryable);
    EXPECT_EQ(error.op, name);
    EXPECT(std::ranges::find(texts, error.what) != texts.end());
    errors.add(error);
    broken.insert(error.what);
  }
  for (const std::string_view text : texts) {
    if (!broken.contains(text)) fail(__FILE__, __LINE__, fmt::format("no case breaks \"{}\"", text));
  }
}

template <typename Op, typename Plan>
void expectRules(ErrorLines& errors, std::span<const Rule<Op>> rules, std::string_view name, const Op& valid,
                 std::span<const Break<Op>> cases, const Plan& plan) {
  EXPECT(bool(checkRules(rules, valid, name)));
  expectRules<Op>(errors, textsOf(rules), name, valid, cases, plan);
}

// All rules of an op's plan.
template <typename Op>
void expectRules(const GoldenText& golden, std::span<const Rule<Op>> rules, const Op& valid,
                 std::span<const Break<Op>> cases) {
  ErrorLines errors;
  expectRules<Op>(errors, rules, Op::name, valid, cases, [](const Op& op) { return plan(op); });
  expectGolden(golden, errors.lines());
}

}  // namespace mnk::test
