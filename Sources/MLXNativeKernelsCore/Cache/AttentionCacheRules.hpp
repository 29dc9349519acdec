// What a cache's descriptor must satisfy.
#pragma once
#include <span>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "Support/Rule.hpp"

namespace mnk {

std::span<const Rule<AttentionCacheDescriptor>> attentionCacheRules();

}  // namespace mnk
