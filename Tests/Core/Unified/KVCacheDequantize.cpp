// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheDequantize/KVCacheDequantizeRuleTests.cpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeTests.cpp"
