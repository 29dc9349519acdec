#include "EmbeddedSources.hpp"

#if defined(__has_embed)
#define MNK_HOST_CAN_EMBED 1
#pragma clang diagnostic ignored "-Wc23-extensions"
#else
#define MNK_HOST_CAN_EMBED 0
#endif

namespace mnk::host {

#if MNK_HOST_CAN_EMBED

namespace {

constexpr char kHostKernels[] = {
#embed "HostKernels.h"
};
constexpr char kCallbacksCpp[] = {
#embed "Executor/Callbacks.cpp"
};
constexpr char kChecks[] = {
#embed "Executor/Checks.h"
};
constexpr char kExecutorCpp[] = {
#embed "Executor/Executor.cpp"
};
constexpr char kFiber[] = {
#embed "Executor/Fiber.h"
};
constexpr char kLane[] = {
#embed "Executor/Lane.h"
};
constexpr char kModule[] = {
#embed "Executor/Module.h"
};
constexpr char kRegistration[] = {
#embed "Executor/Registration.h"
};
constexpr char kSanitizers[] = {
#embed "Executor/Sanitizers.h"
};
constexpr char kSchedulerCpp[] = {
#embed "Executor/Scheduler.cpp"
};
constexpr char kWatcher[] = {
#embed "Executor/Watcher.h"
};
constexpr char kWorker[] = {
#embed "Executor/Worker.h"
};
constexpr char kWorkerCpp[] = {
#embed "Executor/Worker.cpp"
};
constexpr char kAccuracy[] = {
#embed "MetalStdlib/Accuracy.h"
};
constexpr char kAtomics[] = {
#embed "MetalStdlib/Atomics.h"
};
constexpr char kCommon[] = {
#embed "MetalStdlib/Common.h"
};
constexpr char kIntegers[] = {
#embed "MetalStdlib/Integers.h"
};
constexpr char kKernelArguments[] = {
#embed "MetalStdlib/KernelArguments.h"
};
constexpr char kKernelKeywords[] = {
#embed "MetalStdlib/KernelKeywords.h"
};
constexpr char kLanes[] = {
#embed "MetalStdlib/Lanes.h"
};
constexpr char kMath[] = {
#embed "MetalStdlib/Math.h"
};
constexpr char kPackedVectors[] = {
#embed "MetalStdlib/PackedVectors.h"
};
constexpr char kPerturbedMath[] = {
#embed "MetalStdlib/PerturbedMath.h"
};
constexpr char kSimdgroupMatrix[] = {
#embed "MetalStdlib/SimdgroupMatrix.h"
};
constexpr char kSimdgroups[] = {
#embed "MetalStdlib/Simdgroups.h"
};
constexpr char kSmallFloats[] = {
#embed "MetalStdlib/SmallFloats.h"
};
constexpr char kSwizzles[] = {
#embed "MetalStdlib/Swizzles.h"
};
constexpr char kTraits[] = {
#embed "MetalStdlib/Traits.h"
};
constexpr char kVectors[] = {
#embed "MetalStdlib/Vectors.h"
};

template <size_t N>
constexpr std::string_view text(const char (&bytes)[N]) {
  return {bytes, N};
}

constexpr EmbeddedSource kSources[] = {
    {"HostKernels.h", text(kHostKernels)},
    {"Executor/Callbacks.cpp", text(kCallbacksCpp)},
    {"Executor/Checks.h", text(kChecks)},
    {"Executor/Executor.cpp", text(kExecutorCpp)},
    {"Executor/Fiber.h", text(kFiber)},
    {"Executor/Lane.h", text(kLane)},
    {"Executor/Module.h", text(kModule)},
    {"Executor/Registration.h", text(kRegistration)},
    {"Executor/Sanitizers.h", text(kSanitizers)},
    {"Executor/Scheduler.cpp", text(kSchedulerCpp)},
    {"Executor/Watcher.h", text(kWatcher)},
    {"Executor/Worker.h", text(kWorker)},
    {"Executor/Worker.cpp", text(kWorkerCpp)},
    {"MetalStdlib/Accuracy.h", text(kAccuracy)},
    {"MetalStdlib/Atomics.h", text(kAtomics)},
    {"MetalStdlib/Common.h", text(kCommon)},
    {"MetalStdlib/Integers.h", text(kIntegers)},
    {"MetalStdlib/KernelArguments.h", text(kKernelArguments)},
    {"MetalStdlib/KernelKeywords.h", text(kKernelKeywords)},
    {"MetalStdlib/Lanes.h", text(kLanes)},
    {"MetalStdlib/Math.h", text(kMath)},
    {"MetalStdlib/PackedVectors.h", text(kPackedVectors)},
    {"MetalStdlib/PerturbedMath.h", text(kPerturbedMath)},
    {"MetalStdlib/SimdgroupMatrix.h", text(kSimdgroupMatrix)},
    {"MetalStdlib/Simdgroups.h", text(kSimdgroups)},
    {"MetalStdlib/SmallFloats.h", text(kSmallFloats)},
    {"MetalStdlib/Swizzles.h", text(kSwizzles)},
    {"MetalStdlib/Traits.h", text(kTraits)},
    {"MetalStdlib/Vectors.h", text(kVectors)},
};

}  // namespace

std::span<const EmbeddedSource> embeddedSources() {
  return kSources;
}

#else

std::span<const EmbeddedSource> embeddedSources() {
  return {};
}

#endif

}  // namespace mnk::host
