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
#include <list>
#include "Harness/EveryDevice.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"
#include "Harness/Seeded.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.hpp"
#include <unordered_map>
#include "Ops/Common/EveryRun.hpp"
#include <numeric>
#include <optional>
#include <utility>
#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"
#include <deque>
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
#define kLayouts kLayouts_KVCacheWriteCases
#define Case Case_KVCacheWriteCases
#include "Ops/KVCacheWrite/KVCacheWriteCases.cpp"
#undef Case
#undef kLayouts
#include "Ops/KVCacheWrite/KVCacheWriteReference.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteRun.cpp"
#define text text_KVCacheWriteSourceCases
#define kLayouts kLayouts_KVCacheWriteSourceCases
#define Case Case_KVCacheWriteSourceCases
#include "Ops/KVCacheWrite/KVCacheWriteSourceCases.cpp"
#undef Case
#undef kLayouts
#undef text
#define shapeOf shapeOf_MultiRoPECase
#define Case Case_MultiRoPECase
#include "Ops/MultiRoPE/MultiRoPECase.cpp"
#undef Case
#undef shapeOf
#define Case Case_MultiRoPECases
#include "Ops/MultiRoPE/MultiRoPECases.cpp"
#undef Case
#define placesOf placesOf_MultiRoPEReference
#include "Ops/MultiRoPE/MultiRoPEReference.cpp"
#undef placesOf
#define text text_MultiRoPERun
#include "Ops/MultiRoPE/MultiRoPERun.cpp"
#undef text
