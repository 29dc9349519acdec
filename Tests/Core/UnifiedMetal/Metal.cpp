// Made by .ci/unify.
// clang-format off
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include "Devices/Metal/EmbeddedShaders.hpp"
#include "Devices/Metal/LibraryFinder.hpp"
#include "Metal/MetalFixture.hpp"
#include <cstring>
#include <vector>
#include "CAPI/CApiHarness.hpp"
#include "MLXNativeKernels/mnk_metal.h"
#include <atomic>
#include "Devices/Metal/MetalFailures.hpp"
#include <filesystem>
#include <utility>
#include <fmt/ranges.h>
#include "Shipped/ShippedKernels.hpp"
#include "Harness/HeldWork.hpp"
#include <fstream>
#include <cmath>
#include "MLXNativeKernels/KernelRegistry.hpp"
#include <thread>
#include "Devices/Metal/MetalSubmission.hpp"
#include "Harness/Check.hpp"
#include "SoftMetal.hpp"
#include <mutex>
#include <stdexcept>
#include "SoftMetal/SoftMetalFixture.hpp"
#include <sys/mman.h>
#include "Harness/EnvironmentVariable.hpp"
#include "DeclaredAccesses.hpp"
#include "Hazards.hpp"
#include <pthread.h>
#include "SoftObject.hpp"
#include "Metal/EmbeddedLibraryTests.cpp"
#include "Metal/MetalBufferTests.cpp"
#include "Metal/MetalCApiTests.cpp"
#include "Metal/MetalDeviceTests.cpp"
#include "Metal/MetalFailureTests.cpp"
#include "Metal/MetalFixture.cpp"
#include "Metal/MetalInFlightTests.cpp"
#include "Metal/MetalLibraryTests.cpp"
#include "Metal/MetalOpTimesTests.cpp"
#include "Metal/MetalPipelineTests.cpp"
#define appBuffer appBuffer_MetalSubmissionTests
#define traceText traceText_MetalSubmissionTests
#include "Metal/MetalSubmissionTests.cpp"
#undef traceText
#undef appBuffer
#include "Metal/SelectorLists.cpp"
#include "SoftMetal/CommandBufferTests.cpp"
#include "SoftMetal/CounterTests.cpp"
#include "SoftMetal/DeviceTests.cpp"
#include "SoftMetal/EncoderTests.cpp"
#include "SoftMetal/ExecutionTests.cpp"
#include "SoftMetal/FaultTests.cpp"
#include "SoftMetal/FoundationTests.cpp"
#include "SoftMetal/HazardTests.cpp"
#define Sender Sender_LibraryTests
#define export_kernel export_kernel_LibraryTests
#include "SoftMetal/LibraryTests.cpp"
#undef export_kernel
#undef Sender
#include "SoftMetal/ObjectTests.cpp"
#include "SoftMetal/PipelineTests.cpp"
#define Sender Sender_RuntimeTests
#include "SoftMetal/RuntimeTests.cpp"
#undef Sender
#include "SoftMetal/SoftMetalFixture.cpp"
