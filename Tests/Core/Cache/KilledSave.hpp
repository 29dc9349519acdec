// A process that saves a cache repeatedly until it is killed.
#pragma once
#include <string>

#include "MLXNativeKernels/AttentionCache.hpp"

namespace mnk::test {

inline constexpr uint32_t kKilledSaveWidth = 1 << 17;
inline constexpr float kKilledSaveElement = 1.5f;

// Implements the option --save-until-killed of Tests/Packaging/core-tests. The file holds up to 2 tokens, whose keys
// have this width and element. If the path ends in ".named", temporary files always have names.
[[noreturn]] void saveUntilKilled(const std::string& path);

}  // namespace mnk::test
