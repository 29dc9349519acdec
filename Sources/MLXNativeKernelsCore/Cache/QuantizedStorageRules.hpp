// What a descriptor with quantized storage must satisfy besides.
#pragma once
#include <span>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "Support/Rule.hpp"

namespace mnk {

std::span<const Rule<AttentionCacheDescriptor>> quantizedStorageRules();

}  // namespace mnk
