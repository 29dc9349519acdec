// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Cache/AttentionCache.cpp"
#include "Cache/CacheCursors.cpp"
#include "Cache/ResolvedStep.cpp"
#include "Cache/StepPlan.cpp"

// What follows neither iterates over data nor encodes steps: it is optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Cache/AttentionCacheCopy.cpp"
#include "Cache/AttentionCacheRules.cpp"
#include "Cache/CacheFile.cpp"
#include "Cache/PrefixedAttention.cpp"
#include "Cache/RotatedTokens.cpp"
#include "Prepare/Prepare.cpp"
#include "Prepare/TuningFile.cpp"
#pragma clang attribute pop
