// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheQuantize/CodeSearchTests.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeDistortionTests.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizePlanTests.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRuleTests.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeSpecialTests.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeTests.cpp"
#include "Runtime/RecordedStepTests.cpp"
