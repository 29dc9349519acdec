// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheDequantize/KVCacheDequantize.cpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.cpp"
