// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.cpp"
