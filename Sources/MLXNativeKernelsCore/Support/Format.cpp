#include "Support/Format.hpp"

namespace mnk {

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

}  // namespace mnk
