// One line of a contract. The rules of an op form a table that is checked from top to bottom; the first broken rule
// becomes the error, so a rule may rely on those above it.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

template <typename Op>
struct Rule {
  std::string_view what;  // what is wrong when the rule is broken
  bool (*holds)(const Op&);
  std::string (*got)(const Op&);
  std::string (*expected)(const Op&);
  std::string_view fix;
  ErrorCode code = ErrorCode::invalidArgument;
};

template <typename Op>
std::optional<Error> firstBroken(std::span<const Rule<Op>> rules, const Op& op, std::string_view name) {
  for (const Rule<Op>& rule : rules) {
    if (rule.holds(op)) continue;
    return Error{.code = rule.code,
                 .op = std::string(name),
                 .what = std::string(rule.what),
                 .got = rule.got(op),
                 .expected = rule.expected(op),
                 .fix = std::string(rule.fix)};
  }
  return std::nullopt;
}

template <typename Op>
std::vector<Rule<Op>> joined(std::initializer_list<std::span<const Rule<Op>>> tables) {
  std::vector<Rule<Op>> all;
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace mnk
