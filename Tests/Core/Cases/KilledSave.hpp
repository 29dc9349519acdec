// A process that saves a cache again and again until it is killed.
#pragma once
#include <string>

#include "MLXNativeKernels/AttentionCache.hpp"

namespace mnk::test {

// As the option --save-until-killed of Tests/House/core-tests. The file holds 1 token or 2. With a path that ends in
// ".named", temporary files always have names.
[[noreturn]] void saveUntilKilled(const std::string& path);

}  // namespace mnk::test
