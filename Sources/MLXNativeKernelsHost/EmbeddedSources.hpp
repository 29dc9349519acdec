// The sources of MetalStdlib and the executor, for libraries that are compiled at run time.
#pragma once
#include <span>
#include <string_view>

namespace mnk::host {

struct EmbeddedSource {
  std::string_view path;  // relative to this file's folder
  std::string_view text;
};

// Empty if the compiler that built the core does not support #embed.
std::span<const EmbeddedSource> embeddedSources();

}  // namespace mnk::host
