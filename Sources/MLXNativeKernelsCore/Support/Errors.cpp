#include "Support/Errors.hpp"

#include <exception>
#include <new>

namespace mnk {

std::string Error::message() const {
  std::string text = op.empty() ? what : fmt::format("{}: {}", op, what);
  if (!got.empty() && !expected.empty()) {
    text += fmt::format(" (got {}, expected {})", got, expected);
  } else if (!got.empty()) {
    text += fmt::format(" (got {})", got);
  } else if (!expected.empty()) {
    text += fmt::format(" (expected {})", expected);
  }
  text += ".";
  if (!fix.empty()) text += " " + fix;
  return text;
}

StoredError::StoredError(const Error& error) : value(error) {}
StoredError::StoredError(Error&& error) noexcept : value(std::move(error)) {}
StoredError::StoredError(const StoredError&) = default;
StoredError::StoredError(StoredError&&) noexcept = default;
StoredError& StoredError::operator=(const StoredError&) = default;
StoredError& StoredError::operator=(StoredError&&) noexcept = default;
StoredError::~StoredError() = default;

std::string bytesText(uint64_t bytes) {
  if (bytes < 1000) return countText(bytes, "byte");
  const char* unit = "KB";
  double amount = static_cast<double>(bytes) / 1e3;
  if (bytes >= 999'950) unit = "MB", amount /= 1e3;
  if (bytes >= 999'950'000) unit = "GB", amount /= 1e3;
  return fmt::format("{:.1f} {}", amount, unit);
}

std::string secondsText(double seconds) {
  if (seconds < 999.5e-6) return fmt::format("{:.0f} µs", seconds * 1e6);
  if (seconds < 0.99995) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string countText(uint64_t count, std::string_view noun) {
  const bool hisses = !noun.empty() && noun.back() == 'h';
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : hisses ? "es" : "s");
}

std::string oneOf(const std::vector<std::string>& names, std::string_view none) {
  constexpr size_t kShown = 6;
  if (names.empty()) return std::string(none);
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i == 0 ? "one of " : ", ") + names[i];
  return names.size() > kShown ? text + ", …" : text;
}

Error makeError(ErrorCode code, std::string_view op, std::string_view what, std::string_view got,
                std::string_view expected, std::string_view fix, bool retryable) {
  return {code,     std::string(op), std::string(what), std::string(got), std::string(expected), std::string(fix),
          retryable};
}

Error invalidArgument(std::string_view op, std::string_view what, std::string_view got, std::string_view expected,
                      std::string_view fix) {
  return makeError(ErrorCode::invalidArgument, op, what, got, expected, fix);
}

namespace {

// The first 15 characters, which every standard library stores inside the string object.
std::string inPlace(std::string_view text) noexcept {
  return std::string(text.substr(0, 15));
}

// The op of a call such as "AttentionCache.append".
std::string opInPlace(std::string_view op) noexcept {
  return inPlace(op.substr(0, op.find('.')));
}

}  // namespace

Error outOfMemory(std::string_view op, std::string_view got) noexcept {
  try {
    return makeError(ErrorCode::outOfMemory, op, "memory ran out", got, "free memory", "Free memory, or ask for less.",
                     true);
  } catch (...) {
    return {.code = ErrorCode::outOfMemory,
            .op = opInPlace(op),
            .what = inPlace("memory ran out"),
            .got = inPlace("an allocation"),
            .expected = inPlace("free memory"),
            .fix = inPlace("Free memory."),
            .retryable = true};
  }
}

Error unexpectedException(std::string_view op, std::string_view got) noexcept {
  try {
    return makeError(
        ErrorCode::deviceFault, op, "an unexpected exception was stopped", got, "none",
        "Catch what a function of your own throws; anything else is a bug in MLXNativeKernels: please report it.");
  } catch (...) {
    return outOfMemory(op, "an exception");
  }
}

Error copyOrCode(const Error& error) noexcept {
  try {
    return error;
  } catch (...) {
    return {.code = error.code,
            .op = opInPlace(error.op),
            .what = inPlace(error.code == ErrorCode::outOfMemory ? "memory ran out" : "work failed"),
            .got = {},
            .expected = {},
            .fix = {},
            .retryable = error.retryable};
  }
}

Error errorForException(std::string_view op) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return outOfMemory(op, "a failed allocation");
  } catch (const std::exception& exception) {
    return unexpectedException(op, exception.what());
  } catch (...) {  // on Apple's systems also an NSException, which has no C++ type
    return unexpectedException(op, "an exception that is not a std::exception");
  }
}

Error renamed(Error error, std::string_view call) noexcept {
  try {
    error.op = call;
  } catch (...) {  // keep the name of the op that implements the call
  }
  return error;
}

std::optional<Mismatch> mismatch(std::string_view got, std::string_view expected) {
  return Mismatch{std::string(got), std::string(expected)};
}

}  // namespace mnk
