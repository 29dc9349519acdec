// The contract of KVCacheWrite.
#pragma once
#include <span>

#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Support/Errors.hpp"

namespace mnk {

// The rules in the order they are checked.
std::span<const Rule<KVCacheWrite>> kvCacheWriteRules();

}  // namespace mnk
