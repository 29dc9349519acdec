#include "MLXNativeKernels/Result.hpp"
#include "Support/Format.hpp"

namespace mnk {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalidArgument:
      return "invalidArgument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::outOfMemory:
      return "outOfMemory";
    case ErrorCode::libraryNotFound:
      return "libraryNotFound";
    case ErrorCode::shaderBuild:
      return "shaderBuild";
    case ErrorCode::deviceFault:
      return "deviceFault";
    case ErrorCode::deviceLost:
      return "deviceLost";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::pageFault:
      return "pageFault";
    case ErrorCode::notPermitted:
      return "notPermitted";
    case ErrorCode::wouldDeadlock:
      return "wouldDeadlock";
  }
  return "unknown code";
}

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

}  // namespace mnk
