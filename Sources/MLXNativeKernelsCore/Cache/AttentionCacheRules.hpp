// Rules of a cache descriptor that do not depend on its storage, and the errors of calls of a cache.
#pragma once
#include <span>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "Support/Errors.hpp"

namespace mnk {

inline constexpr std::string_view kCacheName = "AttentionCache";  // in messages
Error cacheError(std::string_view what, std::string got, std::string expected, std::string_view fix);

// Fills in fields for which the cache chooses the value.
void resolveDefaults(AttentionCacheDescriptor& descriptor);

std::span<const Rule<AttentionCacheDescriptor>> attentionCacheRules();

// Returns the first violated rule, including those of quantized storage. valueHeadDim must not be 0.
Result<void> checkRules(const AttentionCacheDescriptor& descriptor);

// Additional rules for a descriptor with quantized storage.
std::span<const Rule<AttentionCacheDescriptor>> quantizedStorageRules();

}  // namespace mnk
