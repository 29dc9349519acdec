// Made by .ci/unify.
// clang-format off
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>
#include "Harness/Check.hpp"
#include "Harness/Seeded.hpp"
#include "Harness/ShippedTables.hpp"
#include <cfloat>
#include <source_location>
#include <string_view>
#include "Common/KVCodecTypes.h"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/HeadsView.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include <numbers>
#include "Harness/EveryDevice.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/StoredVector.hpp"
#include <cstring>
#include <span>
#include "FlashDecode/FlashDecodeTypes.h"
#include "Hadamard/HadamardTypes.h"
#include "KVCacheDequantize/KVCacheDequantizeTypes.h"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "MLXNativeKernels/KVCacheQuantize.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "RotaryAppend/RotaryAppendTypes.h"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/Hadamard/HadamardRules.hpp"
#include "Harness/GuardedTensor.hpp"
#include "Harness/RawBytes.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Hadamard.hpp"
#include "Ops/Common/TurboSigns.hpp"
#include "Ops/Hadamard/HadamardRun.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.hpp"
#include "Ops/Common/GuardedOperands.hpp"
#include "Common/FunctionConstants.h"
#include "Host/HostTestSupport.hpp"
#include <map>
#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.hpp"
#include "MLXNativeKernels/KVCacheDequantize.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.hpp"
#include <limits>
#include <array>
#include "Ops/KVCacheWrite/KVCacheWriteRun.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRules.hpp"
#include "Ops/MultiRoPE/MultiRoPERun.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"
#include "Ops/MultiRoPE/MultiRoPEReference.hpp"
#include <cstdio>
#include "Ops/MultiRoPE/MultiRoPERules.hpp"
#include "Ops/MultiRoPE/RotaryFrequencies.hpp"
#include "Ops/MultiRoPE/RotaryRules.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"
#include "Ops/Common/CodecSignsTests.cpp"
#include "Ops/Common/CodecTablesTests.cpp"
#include "Ops/Common/HeadsViewTests.cpp"
#define distortion distortion_KVCodecGoldenTests
#include "Ops/Common/KVCodecGoldenTests.cpp"
#undef distortion
#include "Ops/Common/ParameterLayoutTests.cpp"
#include "Ops/Hadamard/HadamardRuleTests.cpp"
#include "Ops/Hadamard/HadamardTests.cpp"
#define kGolden kGolden_KVCacheDequantizeRuleTests
#define kBroken kBroken_KVCacheDequantizeRuleTests
#define soundOp soundOp_KVCacheDequantizeRuleTests
#define Op Op_KVCacheDequantizeRuleTests
#include "Ops/KVCacheDequantize/KVCacheDequantizeRuleTests.cpp"
#undef Op
#undef soundOp
#undef kBroken
#undef kGolden
#include "Ops/KVCacheDequantize/KVCacheDequantizeTests.cpp"
#include "Ops/KVCacheQuantize/CodeSearchTests.cpp"
#define Case Case_KVCacheQuantizePlanTests
#include "Ops/KVCacheQuantize/KVCacheQuantizePlanTests.cpp"
#undef Case
#define kGolden kGolden_KVCacheQuantizeRuleTests
#define kBroken kBroken_KVCacheQuantizeRuleTests
#define soundOp soundOp_KVCacheQuantizeRuleTests
#define planeOf planeOf_KVCacheQuantizeRuleTests
#define Op Op_KVCacheQuantizeRuleTests
#include "Ops/KVCacheQuantize/KVCacheQuantizeRuleTests.cpp"
#undef Op
#undef planeOf
#undef soundOp
#undef kBroken
#undef kGolden
#define relativeError relativeError_KVCacheQuantizeSpecialTests
#include "Ops/KVCacheQuantize/KVCacheQuantizeSpecialTests.cpp"
#undef relativeError
#define planeOf planeOf_KVCacheQuantizeStabilityTests
#include "Ops/KVCacheQuantize/KVCacheQuantizeStabilityTests.cpp"
#undef planeOf
#include "Ops/KVCacheQuantize/KVCacheQuantizeTests.cpp"
#define Case Case_KVCacheWriteCoverageTests
#include "Ops/KVCacheWrite/KVCacheWriteCoverageTests.cpp"
#undef Case
#include "Ops/KVCacheWrite/KVCacheWriteOperandTests.cpp"
#define kPlans kPlans_KVCacheWritePlanTests
#define expectPlane expectPlane_KVCacheWritePlanTests
#define planOp planOp_KVCacheWritePlanTests
#define Case Case_KVCacheWritePlanTests
#include "Ops/KVCacheWrite/KVCacheWritePlanTests.cpp"
#undef Case
#undef planOp
#undef expectPlane
#undef kPlans
#define kGolden kGolden_KVCacheWriteRuleTests
#define soundOp soundOp_KVCacheWriteRuleTests
#define kBroken kBroken_KVCacheWriteRuleTests
#define Op Op_KVCacheWriteRuleTests
#include "Ops/KVCacheWrite/KVCacheWriteRuleTests.cpp"
#undef Op
#undef kBroken
#undef soundOp
#undef kGolden
#include "Ops/KVCacheWrite/KVCacheWriteTests.cpp"
#include "Ops/MultiRoPE/MultiRoPECoverageTests.cpp"
#define Case Case_MultiRoPEIdentityTests
#include "Ops/MultiRoPE/MultiRoPEIdentityTests.cpp"
#undef Case
#define kPlans kPlans_MultiRoPEPlanTests
#define onlyDispatch onlyDispatch_MultiRoPEPlanTests
#define planOp planOp_MultiRoPEPlanTests
#define Case Case_MultiRoPEPlanTests
#include "Ops/MultiRoPE/MultiRoPEPlanTests.cpp"
#undef Case
#undef planOp
#undef onlyDispatch
#undef kPlans
#define turned turned_MultiRoPEPrecisionTests
#include "Ops/MultiRoPE/MultiRoPEPrecisionTests.cpp"
#undef turned
#define kGolden kGolden_MultiRoPERuleTests
#define kBroken kBroken_MultiRoPERuleTests
#define soundOp soundOp_MultiRoPERuleTests
#define List List_MultiRoPERuleTests
#define Op Op_MultiRoPERuleTests
#include "Ops/MultiRoPE/MultiRoPERuleTests.cpp"
#undef Op
#undef List
#undef soundOp
#undef kBroken
#undef kGolden
#define Case Case_MultiRoPETests
#include "Ops/MultiRoPE/MultiRoPETests.cpp"
#undef Case
#define expectNear expectNear_RotaryFrequenciesTests
#include "Ops/MultiRoPE/RotaryFrequenciesTests.cpp"
#undef expectNear
#define kGolden kGolden_RotaryRuleTests
#define kBroken kBroken_RotaryRuleTests
#define Op Op_RotaryRuleTests
#include "Ops/MultiRoPE/RotaryRuleTests.cpp"
#undef Op
#undef kBroken
#undef kGolden
#include "Ops/MultiRoPE/RotaryTableTests.cpp"
#define kPlans kPlans_RotaryAppendPlanTests
#define dense dense_RotaryAppendPlanTests
#define kTokens kTokens_RotaryAppendPlanTests
#include "Ops/RotaryAppend/RotaryAppendPlanTests.cpp"
#undef kTokens
#undef dense
#undef kPlans
