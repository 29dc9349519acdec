// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "CAPI/CacheCAPI.cpp"
#include "CAPI/DeviceCAPI.cpp"
#include "CAPI/EncoderCAPI.cpp"
#include "CAPI/Errors.cpp"
#include "CAPI/FlashDecodeCAPI.cpp"
#include "CAPI/HadamardCAPI.cpp"
#include "CAPI/HeadsViews.cpp"
#include "CAPI/KVCacheQuantizeCAPI.cpp"
#include "CAPI/KVCacheWriteCAPI.cpp"
#include "CAPI/KVCodecCAPI.cpp"
#include "CAPI/KVViews.cpp"
#include "CAPI/MetalCAPI.cpp"
#include "CAPI/MultiRoPECAPI.cpp"
#include "CAPI/PrepareCAPI.cpp"
#include "CAPI/TensorCAPI.cpp"
#pragma clang attribute pop
