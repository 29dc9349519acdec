// Additional rules for a descriptor with quantized storage.
#pragma once
#include <span>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "Support/Errors.hpp"

namespace mnk {

std::span<const Rule<AttentionCacheDescriptor>> quantizedStorageRules();

}  // namespace mnk
