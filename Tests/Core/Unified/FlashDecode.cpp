// Made by .ci/unify.
// clang-format off
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
#include <cstdlib>
#include "Ops/FlashDecode/FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include <cmath>
#include <cstring>
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "HostLevels.h"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include <algorithm>
#include <future>
#include "Harness/RawBytes.hpp"
#include "Harness/Seeded.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include <map>
#include <set>
#include "FlashDecode/FlashDecodeTypes.h"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"
#include "Harness/DeclaredBytes.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MergePartials.hpp"
#include "Ops/Common/TurboSigns.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/FlashDecode.hpp"
#include "MLXNativeKernels/Hadamard.hpp"
#include "Ops/FlashDecode/TokenAttention.hpp"
#include "MLXNativeKernels/KVCacheDequantize.hpp"
#include "MLXNativeKernels/KVCacheQuantize.hpp"
#include "Ops/Common/EveryRun.hpp"
#include "Ops/FlashDecode/MeasuredTuning.hpp"
#include <limits>
#include <array>
#include "Ops/FlashDecode/PrefillFixture.hpp"
#include <fmt/ranges.h>
#include <bit>
#include <sys/stat.h>
#include <unistd.h>
#include "Cache/CacheFileFixture.hpp"
#include "Harness/EnvironmentVariable.hpp"
#include "Harness/TimedDevice.hpp"
#include "Prepare/TuningFile.hpp"
#include "Ops/MergePartials/MergePartialsRules.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Ops/FlashDecode/FlashDecodeCacheRuleTests.cpp"
#include "Ops/FlashDecode/FlashDecodeGridTests.cpp"
#include "Ops/FlashDecode/FlashDecodeInKernelMergeTests.cpp"
#include "Ops/FlashDecode/FlashDecodeMatrixTests.cpp"
#include "Ops/FlashDecode/FlashDecodeOptionsTests.cpp"
#include "Ops/FlashDecode/FlashDecodePlanTests.cpp"
#include "Ops/FlashDecode/FlashDecodePresetTests.cpp"
#include "Ops/FlashDecode/FlashDecodeQuantizedTests.cpp"
#include "Ops/FlashDecode/FlashDecodeRaggedTests.cpp"
#include "Ops/FlashDecode/FlashDecodeRangeTests.cpp"
#define kGolden kGolden_FlashDecodeRuleTests
#define soundOp soundOp_FlashDecodeRuleTests
#include "Ops/FlashDecode/FlashDecodeRuleTests.cpp"
#undef soundOp
#undef kGolden
#include "Ops/FlashDecode/FlashDecodeSpecialTests.cpp"
#include "Ops/FlashDecode/FlashDecodeTests.cpp"
#include "Ops/FlashDecode/FlashLatentTests.cpp"
#define anyCases anyCases_FlashPrefillTests
#define anyCase anyCase_FlashPrefillTests
#define setStorage setStorage_FlashPrefillTests
#include "Ops/FlashDecode/FlashPrefillTests.cpp"
#undef setStorage
#undef anyCase
#undef anyCases
#include "Ops/FlashDecode/MeasuredTuningTests.cpp"
#define kGolden kGolden_MergePartialsRuleTests
#define kBroken kBroken_MergePartialsRuleTests
#define usePartials usePartials_MergePartialsRuleTests
#define soundOp soundOp_MergePartialsRuleTests
#define Op Op_MergePartialsRuleTests
#include "Ops/MergePartials/MergePartialsRuleTests.cpp"
#undef Op
#undef soundOp
#undef usePartials
#undef kBroken
#undef kGolden
#include "Ops/MergePartials/MergePartialsTests.cpp"
#define Numbers Numbers_AttentionCacheStepListTests
#include "Cache/AttentionCacheStepListTests.cpp"
#undef Numbers
