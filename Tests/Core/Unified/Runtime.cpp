// Made by .ci/unify.
// clang-format off
#include <cmath>
#include "Harness/Seeded.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/Buffer.hpp"
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <limits>
#include <vector>
#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include <thread>
#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include "Runtime/DispatchRules.hpp"
#include <set>
#include "Harness/Golden.hpp"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include "Devices/Metal/EmbeddedShaders.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/ScriptFolder.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "Runtime/Stamp.h"
#include <bitset>
#include "Harness/HeldWork.hpp"
#include "Runtime/MemoryTracker.hpp"
#include <optional>
#include "Cache/CacheFileFixture.hpp"
#include "Runtime/HazardTracker.hpp"
#include <barrier>
#include "Cache/AttentionCacheFixture.hpp"
#include "MLXNativeKernels/RecordedStep.hpp"
#include <numeric>
#include "Harness/RawBytes.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"
#include "Runtime/RepeatedOp.hpp"
#include <cstring>
#include "MLXNativeKernels/KernelRegistry.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include <functional>
#include "Runtime/RegionSet.hpp"
#include "Harness/TimedDevice.hpp"
#include "Ops/Common/BindingCases.hpp"
#include "MLXNativeKernels/Shape.hpp"
#include "Support/CheckedMath.hpp"
#include <cstdio>
#include <initializer_list>
#include "Common/FunctionConstants.h"
#include "Common/KVCodecTypes.h"
#include "FlashDecode/FlashDecodeTypes.h"
#include "Hadamard/HadamardTypes.h"
#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "MLXNativeKernels/Tensor.hpp"
#include "Runtime/ThreadgroupShape.hpp"
#include "Runtime/BlockSumsTests.cpp"
#include "Runtime/BufferTests.cpp"
#include "Runtime/CommandEncoderTests.cpp"
#define Fixture Fixture_CompletionTests
#include "Runtime/CompletionTests.cpp"
#undef Fixture
#define Fixture Fixture_DispatchRulesTests
#include "Runtime/DispatchRulesTests.cpp"
#undef Fixture
#include "Runtime/EmbeddedShadersTests.cpp"
#include "Runtime/FailedMemoryPropertyTests.cpp"
#define Fixture Fixture_FailedMemoryTests
#include "Runtime/FailedMemoryTests.cpp"
#undef Fixture
#include "Runtime/HandlerWaitTests.cpp"
#define randomRegion randomRegion_HazardTrackerTests
#define bytesOf bytesOf_HazardTrackerTests
#define Bytes Bytes_HazardTrackerTests
#include "Runtime/HazardTrackerTests.cpp"
#undef Bytes
#undef bytesOf
#undef randomRegion
#define Fixture Fixture_MemoryInFlightTests
#include "Runtime/MemoryInFlightTests.cpp"
#undef Fixture
#include "Runtime/MemoryTrackerTests.cpp"
#include "Runtime/OpTimesTests.cpp"
#define Fixture Fixture_OpenStepTests
#define kRead kRead_OpenStepTests
#include "Runtime/OpenStepTests.cpp"
#undef kRead
#undef Fixture
#define Fixture Fixture_RecordedStepEndTests
#include "Runtime/RecordedStepEndTests.cpp"
#undef Fixture
#define bytesOf bytesOf_RecordedStepReplayTests
#include "Runtime/RecordedStepReplayTests.cpp"
#undef bytesOf
#define Fixture Fixture_RecordedStepTests
#include "Runtime/RecordedStepTests.cpp"
#undef Fixture
#include "Runtime/RecordedStepThreadTests.cpp"
#define randomRegion randomRegion_RegionSetTests
#define text text_RegionSetTests
#include "Runtime/RegionSetTests.cpp"
#undef text
#undef randomRegion
#include "Runtime/RepeatedOpTests.cpp"
#define kMax kMax_ShapeTests
#include "Runtime/ShapeTests.cpp"
#undef kMax
#include "Runtime/ShippedLibraryTests.cpp"
#define kMax kMax_TensorTests
#include "Runtime/TensorTests.cpp"
#undef kMax
#define text text_ThreadgroupShapeTests
#include "Runtime/ThreadgroupShapeTests.cpp"
#undef text
#define add add_UserKernelTests
#include "Runtime/UserKernelTests.cpp"
#undef add
