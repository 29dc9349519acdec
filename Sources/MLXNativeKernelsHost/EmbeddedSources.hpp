// The text of the vocabulary and the executor, for libraries that are compiled at run time.
#pragma once
#include <span>
#include <string_view>

namespace mnk::host {

struct EmbeddedSource {
  std::string_view path;  // relative to the folder of this file
  std::string_view text;
};

// Empty where the compiler that built the core cannot embed files.
std::span<const EmbeddedSource> embeddedSources();

}  // namespace mnk::host
