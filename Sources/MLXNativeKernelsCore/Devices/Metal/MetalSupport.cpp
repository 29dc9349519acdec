#include "MetalSupport.hpp"

namespace mnk::metal {

NS::String* nsText(std::string_view text) {
  return NS::String::string(std::string(text).c_str(), NS::UTF8StringEncoding);
}

std::string text(const NS::String* text) {
  const char* bytes = text ? text->utf8String() : nullptr;
  return bytes ? bytes : "";
}

std::string reason(const NS::Error* error) {
  std::string description = error ? text(error->localizedDescription()) : "";
  return description.empty() ? "no reason given" : description;
}

Error metalError(ErrorCode code, std::string what, std::string got, std::string expected, std::string fix) {
  return {.code = code,
          .op = std::string(kOp),
          .what = std::move(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = std::move(fix)};
}

}  // namespace mnk::metal
