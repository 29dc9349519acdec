#include "Support/Rule.hpp"

namespace mnk {

std::optional<Mismatch> mismatch(std::string_view got, std::string_view expected) {
  return Mismatch{std::string(got), std::string(expected)};
}

Error brokenRule(std::string_view name, std::string_view what, Mismatch mismatch, std::string_view fix) {
  return Error{.op = std::string(name),
               .what = std::string(what),
               .got = std::move(mismatch.got),
               .expected = std::move(mismatch.expected),
               .fix = std::string(fix)};
}

}  // namespace mnk
