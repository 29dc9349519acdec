#include "Target.hpp"

#include <cstring>

namespace mnk::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all{kvCacheWriteTarget(),      multiRoPETarget(), kvCacheQuantizeTarget(),
                                       kvCacheDequantizeTarget(), hadamardTarget(),  flashDecodeTarget(),
                                       attentionCacheTarget(),    cacheFileTarget(), farWriteTarget()};
  return all;
}

static std::string problemWith(const mnk_error* error) {
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

Verdict refusalBy(const mnk_error* error) {
  return {.refusal = mnk_error_what(error),
          .code = mnk_error_get_code(error),
          .message = mnk_error_message(error),
          .failure = problemWith(error)};
}

Verdict checkResult(const test::Caught& caught, bool isAccepted, std::string_view expected) {
  if (isAccepted) return {.failure = expected.empty() ? "" : fmt::format("accepted, expected: {}", expected)};
  if (!caught.isSet()) return {.failure = "refused without an error"};
  Verdict verdict = refusalBy(caught.get());
  if (verdict.failure.empty() && verdict.refusal != expected) {
    verdict.failure = fmt::format("{}, expected: {}", verdict.message, expected.empty() ? "success" : expected);
  }
  return verdict;
}

}  // namespace mnk::fuzz
