// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/KVCacheDequantize/KVCacheDequantize.cpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.cpp"
#pragma clang attribute pop
