// What a cache's descriptor must satisfy, whatever its storage.
#pragma once
#include <optional>
#include <span>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "Support/Rule.hpp"

namespace mnk {

inline constexpr std::string_view kCacheName = "AttentionCache";  // in messages

// Puts numbers in the place of those that are left to the cache.
void resolveDefaults(AttentionCacheDescriptor& descriptor);

std::span<const Rule<AttentionCacheDescriptor>> attentionCacheRules();

// The first broken one of these and, where storage is quantized, of its own. valueHeadDim is not 0.
Result<void> checkRules(const AttentionCacheDescriptor& descriptor);

}  // namespace mnk
