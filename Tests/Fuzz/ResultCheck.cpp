#include "ResultCheck.hpp"

#include <cstring>

namespace mnk::fuzz {

std::string problemWith(const mnk_error* error) {
  const auto code = static_cast<uint32_t>(mnk_error_get_code(error));
  if (code < MNK_INVALID_ARGUMENT || code > MNK_WOULD_DEADLOCK) return fmt::format("code {}", code);
  const std::pair<const char*, const char*> parts[] = {{"op", mnk_error_op(error)},
                                                       {"what", mnk_error_what(error)},
                                                       {"got", mnk_error_got(error)},
                                                       {"expected", mnk_error_expected(error)},
                                                       {"fix", mnk_error_fix(error)}};
  for (const auto& [part, text] : parts) {
    if (!text || !*text) return fmt::format("no '{}' in: {}", part, mnk_error_message(error));
    if (!std::strstr(mnk_error_message(error), text)) return fmt::format("'{}' is not in its message", part);
  }
  return {};
}

Verdict checkResult(const test::Caught& caught, bool isAccepted, std::string_view expected) {
  Verdict verdict;
  if (isAccepted) {
    if (!expected.empty()) verdict.failure = fmt::format("accepted, expected: {}", expected);
    return verdict;
  }
  if (!caught.isSet()) return {.failure = "refused without an error"};
  verdict.refusal = mnk_error_what(caught.get());
  verdict.code = mnk_error_get_code(caught.get());
  verdict.failure = problemWith(caught.get());
  if (verdict.failure.empty() && verdict.refusal != expected) {
    verdict.failure =
        fmt::format("{}, expected: {}", mnk_error_message(caught.get()), expected.empty() ? "success" : expected);
  }
  return verdict;
}

}  // namespace mnk::fuzz
