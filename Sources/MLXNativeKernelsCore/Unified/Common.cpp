// Made by .ci/unify.
// clang-format off
#include "Ops/Common/CacheAddressing.hpp"
#include <array>
#include "Common/FunctionConstants.h"
#include <bit>
#include "MLXNativeKernels/HeadsView.hpp"
#include "Support/Guard.hpp"
#include "Ops/KVCacheQuantize/RepeatedQuantize.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/KVCacheWrite/RepeatedWrite.hpp"
#include "Ops/MultiRoPE/RepeatedRotation.hpp"
#include "Ops/RotaryAppend/RepeatedRotaryAppend.hpp"
#include "RotaryAppend/RotaryAppendTypes.h"
#include "Ops/Common/CacheAddressing.cpp"
#include "Ops/Common/HeadsMemory.cpp"
#include "Ops/Common/HeadsView.cpp"
#include "Ops/KVCacheQuantize/RepeatedQuantize.cpp"
#include "Ops/KVCacheWrite/RepeatedWrite.cpp"
#include "Ops/MultiRoPE/RepeatedRotation.cpp"
#define kWriteIndices kWriteIndices_RepeatedRotaryAppend
#include "Ops/RotaryAppend/RepeatedRotaryAppend.cpp"
#undef kWriteIndices
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/Common/CacheAddressRules.hpp"
#include <algorithm>
#include "Ops/Common/HeadsMemory.hpp"
#include "Support/CheckedMath.hpp"
#include "Support/Format.hpp"
#include "MLXNativeKernels/KVCacheView.hpp"
#include "MLXNativeKernels/KVCodec.hpp"
#include "Ops/Common/Overlap.hpp"
#include "MLXNativeKernels/QuantizedKVCacheView.hpp"
#include "Support/Try.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include <vector>
#include "Ops/Common/VectorLanes.hpp"
#include <cmath>
#include "MLXNativeKernels/Hadamard.hpp"
#include "Hadamard/HadamardTypes.h"
#include "Ops/Hadamard/HadamardRules.hpp"
#include "MLXNativeKernels/KVCacheDequantize.hpp"
#include "KVCacheDequantize/KVCacheDequantizeTypes.h"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.hpp"
#include "MLXNativeKernels/KVCacheQuantize.hpp"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include <numeric>
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "Ops/KVCacheWrite/KVCacheWritePlane.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRules.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include <limits>
#include <numbers>
#include <span>
#include "MultiRoPE/MultiRoPETypes.h"
#include "Ops/MultiRoPE/MultiRoPEOperands.hpp"
#include "Ops/MultiRoPE/MultiRoPERules.hpp"
#include "Ops/MultiRoPE/RotaryDispatch.hpp"
#include "Ops/MultiRoPE/RotaryFrequencies.hpp"
#include "Ops/MultiRoPE/RotaryRules.hpp"
#include "Runtime/HazardTracker.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"
#include <stdexcept>
#include "Ops/Common/CacheAddressRules.cpp"
#include "Ops/Common/KVCacheView.cpp"
#include "Ops/Common/KVCodec.cpp"
#include "Ops/Common/Overlap.cpp"
#include "Ops/Common/QuantizedCacheSize.cpp"
#define Op Op_QuantizedKVCacheRules
#include "Ops/Common/QuantizedKVCacheRules.cpp"
#undef Op
#include "Ops/Common/QuantizedKVCacheView.cpp"
#include "Ops/Common/VectorLanes.cpp"
#define Op Op_Hadamard
#include "Ops/Hadamard/Hadamard.cpp"
#undef Op
#define kRules kRules_HadamardRules
#define Op Op_HadamardRules
#include "Ops/Hadamard/HadamardRules.cpp"
#undef Op
#undef kRules
#define makeDispatch makeDispatch_KVCacheDequantize
#define Op Op_KVCacheDequantize
#include "Ops/KVCacheDequantize/KVCacheDequantize.cpp"
#undef Op
#undef makeDispatch
#define kRules kRules_KVCacheDequantizeRules
#define hasMemory hasMemory_KVCacheDequantizeRules
#define Op Op_KVCacheDequantizeRules
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.cpp"
#undef Op
#undef hasMemory
#undef kRules
#define makeDispatch makeDispatch_KVCacheQuantize
#define bindPlane bindPlane_KVCacheQuantize
#define Plane Plane_KVCacheQuantize
#define Op Op_KVCacheQuantize
#include "Ops/KVCacheQuantize/KVCacheQuantize.cpp"
#undef Op
#undef Plane
#undef bindPlane
#undef makeDispatch
#define kRules kRules_KVCacheQuantizeRules
#define overlapOf overlapOf_KVCacheQuantizeRules
#define Op Op_KVCacheQuantizeRules
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.cpp"
#undef Op
#undef overlapOf
#undef kRules
#define makeDispatch makeDispatch_KVCacheWrite
#define planesOf planesOf_KVCacheWrite
#define Plane Plane_KVCacheWrite
#include "Ops/KVCacheWrite/KVCacheWrite.cpp"
#undef Plane
#undef planesOf
#undef makeDispatch
#define kOverlapRules kOverlapRules_KVCacheWriteRules
#define overlapOf overlapOf_KVCacheWriteRules
#define isCacheRank isCacheRank_KVCacheWriteRules
#include "Ops/KVCacheWrite/KVCacheWriteRules.cpp"
#undef isCacheRank
#undef overlapOf
#undef kOverlapRules
#define makeDispatch makeDispatch_MultiRoPE
#define Kernel Kernel_MultiRoPE
#define Op Op_MultiRoPE
#include "Ops/MultiRoPE/MultiRoPE.cpp"
#undef Op
#undef Kernel
#undef makeDispatch
#define regionsOf regionsOf_MultiRoPEOperands
#include "Ops/MultiRoPE/MultiRoPEOperands.cpp"
#undef regionsOf
#define kOverlapRules kOverlapRules_MultiRoPERules
#define kPositionRules kPositionRules_MultiRoPERules
#define Op Op_MultiRoPERules
#include "Ops/MultiRoPE/MultiRoPERules.cpp"
#undef Op
#undef kPositionRules
#undef kOverlapRules
#include "Ops/MultiRoPE/RotaryFrequencies.cpp"
#define kRules kRules_RotaryRules
#define Op Op_RotaryRules
#include "Ops/MultiRoPE/RotaryRules.cpp"
#undef Op
#undef kRules
#define paramsOf paramsOf_RotaryAppend
#define narrow narrow_RotaryAppend
#define Op Op_RotaryAppend
#include "Ops/RotaryAppend/RotaryAppend.cpp"
#undef Op
#undef narrow
#undef paramsOf
#pragma clang attribute pop
