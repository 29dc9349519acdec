// Made by .ci/unify.
// clang-format off
#include <algorithm>
#include <cmath>
#include <filesystem>
#include "Harness/Seeded.hpp"
#include "Harness/SoftFloat.hpp"
#include "Host/HostTestSupport.hpp"
#include "MetalStdlib/Accuracy.h"
#include <fstream>
#include <set>
#include "HostOptions.hpp"
#include "Runtime/MatrixLayoutTypes.h"
#include <limits>
#include <numeric>
#include <atomic>
#include <condition_variable>
#include <future>
#include <thread>
#include "Devices/HostFactory.hpp"
#include "MLXNativeKernelsHost/MLXNativeKernelsHost.h"
#include "Processor.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Runtime/MemoryTracker.hpp"
#include "Harness/Check.hpp"
#include "Harness/EnvironmentVariable.hpp"
#include <fmt/ranges.h>
#include <unistd.h>
#include <csignal>
#include "HostLibrary.hpp"
#include "Harness/ScriptFolder.hpp"
#include <signal.h>
#include "Checking/Traps.hpp"
#include <array>
#include <map>
#include "Checking/Shadow.hpp"
#include "Harness/TimedDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include <tuple>
#include "Cache/CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Ops/FlashDecode/FlashDecodeTuner.hpp"
#include "Prepare/PrepareFixture.hpp"
#include "Harness/HeldWork.hpp"
#include "Cache/QuantizedCacheFixture.hpp"
#include "Harness/RawBytes.hpp"
#include "Runtime/FloatElements.hpp"
#include "Host/HostAccuracyTests.cpp"
#include "Host/HostCheckingTests.cpp"
#define expectFound expectFound_HostCheckingTextTests
#define run run_HostCheckingTextTests
#include "Host/HostCheckingTextTests.cpp"
#undef run
#undef expectFound
#include "Host/HostConformanceMatrixTests.cpp"
#include "Host/HostConformanceTests.cpp"
#include "Host/HostConformanceTypesTests.cpp"
#include "Host/HostDeviceTests.cpp"
#include "Host/HostDispatchCheckingTests.cpp"
#include "Host/HostFaultTests.cpp"
#include "Host/HostOptionsTests.cpp"
#define export_kernel export_kernel_HostPipelineTests
#define pipeline_constant pipeline_constant_HostPipelineTests
#define kText kText_HostPipelineTests
#include "Host/HostPipelineTests.cpp"
#undef kText
#undef pipeline_constant
#undef export_kernel
#include "Host/HostToolchainTests.cpp"
#include "Host/HostTrapsTests.cpp"
#include "Host/ShadowModelTests.cpp"
#include "Prepare/PrepareMemoryTests.cpp"
#define nameOf nameOf_PrepareStorageTests
#include "Prepare/PrepareStorageTests.cpp"
#undef nameOf
#include "Prepare/PrepareTests.cpp"
#define Step Step_AttentionCacheRotaryTests
#include "Cache/AttentionCacheRotaryTests.cpp"
#undef Step
