// Made by .ci/unify.
// clang-format off
#include "Ops/Common/BindingCases.hpp"
#include <algorithm>
#include <cstring>
#include "Harness/SoftFloat.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"
#include "Ops/Common/GuardedOperands.hpp"
#include "Harness/Check.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include <bit>
#include <cmath>
#include <limits>
#include "Ops/Common/KVCodecTables.hpp"
#include <array>
#include <map>
#include <numbers>
#include <span>
#include "Ops/Common/TurboSigns.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Harness/GuardedTensor.hpp"
#include "Harness/RawBytes.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Hadamard/HadamardRun.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.hpp"
#include "Harness/EveryDevice.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.hpp"
#include <unordered_map>
#include "Ops/Common/EveryRun.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"
#include <optional>
#include <utility>
#include <iterator>
#include "Ops/MultiRoPE/MultiRoPEReference.hpp"
#include "Ops/MultiRoPE/MultiRoPERun.hpp"
#include "Ops/Common/BindingCases.cpp"
#include "Ops/Common/GuardedOperands.cpp"
#include "Ops/Common/KVCodecReference.cpp"
#include "Ops/Common/KVCodecTables.cpp"
#include "Ops/Common/StoredVector.cpp"
#include "Ops/Common/TurboSigns.cpp"
#include "Ops/Hadamard/HadamardRun.cpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.cpp"
#define makePlane makePlane_KVCacheQuantizeCase
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.cpp"
#undef makePlane
#define Case Case_KVCacheQuantizeCases
#include "Ops/KVCacheQuantize/KVCacheQuantizeCases.cpp"
#undef Case
#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.cpp"
#define Case Case_KVCacheWriteCases
#include "Ops/KVCacheWrite/KVCacheWriteCases.cpp"
#undef Case
#include "Ops/KVCacheWrite/KVCacheWriteReference.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteRun.cpp"
#define shapeOf shapeOf_MultiRoPECase
#define Case Case_MultiRoPECase
#include "Ops/MultiRoPE/MultiRoPECase.cpp"
#undef Case
#undef shapeOf
#define drawExtents drawExtents_MultiRoPECases
#define Case Case_MultiRoPECases
#include "Ops/MultiRoPE/MultiRoPECases.cpp"
#undef Case
#undef drawExtents
#include "Ops/MultiRoPE/MultiRoPEReference.cpp"
#include "Ops/MultiRoPE/MultiRoPERun.cpp"
