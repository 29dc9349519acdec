// fmt, and text that messages share.
#pragma once
#if !__has_include(<fmt/core.h>)
#error "fmt is missing: `apt install libfmt-dev` on Linux, `git submodule update --init` on Apple platforms"
#endif
#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mnk {

std::string bytesText(uint64_t bytes);                         // "512 bytes", "8.0 KB", "1.1 MB"
std::string secondsText(double seconds);                       // "41 µs", "3.2 ms"
std::string countText(uint64_t count, std::string_view noun);  // "1 barrier", "2 barriers"

// "one of a, b, c, …" for a message about an unknown name; `none` if the list is empty.
std::string oneOf(const std::vector<std::string>& names, std::string_view none);

}  // namespace mnk
