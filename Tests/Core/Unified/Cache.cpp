// Made by .ci/unify.
// clang-format off
#include <fmt/ranges.h>
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "MLXNativeKernels/MergePartials.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Cache/CacheFileFixture.hpp"
#include <cmath>
#include <tuple>
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"
#include "Cache/AttentionCacheFixture.hpp"
#include "Host/HostTestSupport.hpp"
#include <cstdlib>
#include <numeric>
#include "Ops/FlashDecode/AttentionHistory.hpp"
#include "Cache/QuantizedStorageRules.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/RawBytes.hpp"
#include <thread>
#include "Cache/AttentionCacheRules.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include <sys/stat.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <chrono>
#include "Cache/KilledSave.hpp"
#include "Support/TemporaryFile.hpp"
#include "Harness/HeldWork.hpp"
#include "MLXNativeKernels/RecordedStep.hpp"
#include "MLXNativeKernels/KernelRegistry.hpp"
#include <latch>
#include "Harness/Check.hpp"
#include "Cache/AttentionCacheAttendTests.cpp"
#include "Cache/AttentionCacheCopyTests.cpp"
#include "Cache/AttentionCacheLatentTests.cpp"
#include "Cache/AttentionCacheLimitTests.cpp"
#define kHeads kHeads_AttentionCacheModelTests
#include "Cache/AttentionCacheModelTests.cpp"
#undef kHeads
#include "Cache/AttentionCacheOutcomeTests.cpp"
#define kSequences kSequences_AttentionCachePropertyTests
#define kHeads kHeads_AttentionCachePropertyTests
#include "Cache/AttentionCachePropertyTests.cpp"
#undef kHeads
#undef kSequences
#include "Cache/AttentionCacheQuantizedRuleTests.cpp"
#include "Cache/AttentionCacheQuantizedTests.cpp"
#include "Cache/AttentionCacheReadersTests.cpp"
#include "Cache/AttentionCacheRotaryRuleTests.cpp"
#define kGolden kGolden_AttentionCacheRuleTests
#define kBroken kBroken_AttentionCacheRuleTests
#include "Cache/AttentionCacheRuleTests.cpp"
#undef kBroken
#undef kGolden
#define Numbers Numbers_AttentionCacheStepListTests
#define kSequences kSequences_AttentionCacheStepListTests
#include "Cache/AttentionCacheStepListTests.cpp"
#undef kSequences
#undef Numbers
#include "Cache/AttentionCacheStepTests.cpp"
#include "Cache/AttentionCacheTests.cpp"
#include "Cache/CacheFileDamageTests.cpp"
#include "Cache/CacheFileKilledTests.cpp"
#include "Cache/CacheFileTests.cpp"
#include "Cache/MixedCacheTests.cpp"
#include "Cache/QuantizedCopyTests.cpp"
#include "Runtime/KernelRegistryTests.cpp"
