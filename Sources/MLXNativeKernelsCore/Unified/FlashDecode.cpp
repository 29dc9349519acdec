// Made by .ci/unify.
// clang-format off
#include <bit>
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/FlashDecode/RepeatedAttention.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.cpp"
#include "Ops/FlashDecode/RepeatedAttention.cpp"
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/FlashDecode/AttentionDispatch.hpp"
#include <algorithm>
#include "Ops/Common/VectorLanes.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Support/Format.hpp"
#include "Ops/FlashDecode/AttentionResultRules.hpp"
#include "Ops/FlashDecode/AttentionShape.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/CheckedMath.hpp"
#include "Support/Try.hpp"
#include "MLXNativeKernels/FlashDecode.hpp"
#include <cmath>
#include <numbers>
#include "MLXNativeKernels/KernelRegistry.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Support/Guard.hpp"
#include "Ops/FlashDecode/FlashDecodeTuner.hpp"
#include <chrono>
#include <vector>
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Runtime/ThreadgroupShape.hpp"
#include "FlashDecode/FlashDecodeTypes.h"
#include "Ops/FlashDecode/MeasuredTuning.hpp"
#include <array>
#include <charconv>
#include "MLXNativeKernels/MergePartials.hpp"
#include "Ops/MergePartials/MergePartialsRules.hpp"
#include "Ops/FlashDecode/AttentionDispatch.cpp"
#include "Ops/FlashDecode/AttentionResultRules.cpp"
#include "Ops/FlashDecode/AttentionShape.cpp"
#include "Ops/FlashDecode/FlashDecode.cpp"
#include "Ops/FlashDecode/FlashDecodeQueryRules.cpp"
#include "Ops/FlashDecode/FlashDecodeTuner.cpp"
#include "Ops/FlashDecode/FlashDecodeTuning.cpp"
#define kernelOf kernelOf_MeasuredTuning
#include "Ops/FlashDecode/MeasuredTuning.cpp"
#undef kernelOf
#include "Ops/MergePartials/MergePartials.cpp"
#define kRules kRules_MergePartialsRules
#define Op Op_MergePartialsRules
#include "Ops/MergePartials/MergePartialsRules.cpp"
#undef Op
#undef kRules
#pragma clang attribute pop
