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
#embed "Runtime/Callbacks.cpp"
};
constexpr char kChecks[] = {
#embed "Runtime/Checks.h"
};
constexpr char kExecutorCpp[] = {
#embed "Runtime/Executor.cpp"
};
constexpr char kFiber[] = {
#embed "Runtime/Fiber.h"
};
constexpr char kLane[] = {
#embed "Runtime/Lane.h"
};
constexpr char kModule[] = {
#embed "Runtime/Module.h"
};
constexpr char kRegistration[] = {
#embed "Runtime/Registration.h"
};
constexpr char kSanitizers[] = {
#embed "Runtime/Sanitizers.h"
};
constexpr char kSchedulerCpp[] = {
#embed "Runtime/Scheduler.cpp"
};
constexpr char kWatcher[] = {
#embed "Runtime/Watcher.h"
};
constexpr char kWorker[] = {
#embed "Runtime/Worker.h"
};
constexpr char kWorkerCpp[] = {
#embed "Runtime/Worker.cpp"
};
constexpr char kAccuracy[] = {
#embed "Vocabulary/Accuracy.h"
};
constexpr char kAtomics[] = {
#embed "Vocabulary/Atomics.h"
};
constexpr char kCommon[] = {
#embed "Vocabulary/Common.h"
};
constexpr char kIntegers[] = {
#embed "Vocabulary/Integers.h"
};
constexpr char kKernelArguments[] = {
#embed "Vocabulary/KernelArguments.h"
};
constexpr char kKernelWords[] = {
#embed "Vocabulary/KernelWords.h"
};
constexpr char kLanes[] = {
#embed "Vocabulary/Lanes.h"
};
constexpr char kMath[] = {
#embed "Vocabulary/Math.h"
};
constexpr char kPackedVectors[] = {
#embed "Vocabulary/PackedVectors.h"
};
constexpr char kPerturbedMath[] = {
#embed "Vocabulary/PerturbedMath.h"
};
constexpr char kSimdgroupMatrix[] = {
#embed "Vocabulary/SimdgroupMatrix.h"
};
constexpr char kSimdgroups[] = {
#embed "Vocabulary/Simdgroups.h"
};
constexpr char kSmallFloats[] = {
#embed "Vocabulary/SmallFloats.h"
};
constexpr char kSwizzles[] = {
#embed "Vocabulary/Swizzles.h"
};
constexpr char kTraits[] = {
#embed "Vocabulary/Traits.h"
};
constexpr char kVectors[] = {
#embed "Vocabulary/Vectors.h"
};

template <size_t N>
constexpr std::string_view text(const char (&bytes)[N]) {
  return {bytes, N};
}

constexpr EmbeddedSource kSources[] = {
    {"HostKernels.h", text(kHostKernels)},
    {"Runtime/Callbacks.cpp", text(kCallbacksCpp)},
    {"Runtime/Checks.h", text(kChecks)},
    {"Runtime/Executor.cpp", text(kExecutorCpp)},
    {"Runtime/Fiber.h", text(kFiber)},
    {"Runtime/Lane.h", text(kLane)},
    {"Runtime/Module.h", text(kModule)},
    {"Runtime/Registration.h", text(kRegistration)},
    {"Runtime/Sanitizers.h", text(kSanitizers)},
    {"Runtime/Scheduler.cpp", text(kSchedulerCpp)},
    {"Runtime/Watcher.h", text(kWatcher)},
    {"Runtime/Worker.h", text(kWorker)},
    {"Runtime/Worker.cpp", text(kWorkerCpp)},
    {"Vocabulary/Accuracy.h", text(kAccuracy)},
    {"Vocabulary/Atomics.h", text(kAtomics)},
    {"Vocabulary/Common.h", text(kCommon)},
    {"Vocabulary/Integers.h", text(kIntegers)},
    {"Vocabulary/KernelArguments.h", text(kKernelArguments)},
    {"Vocabulary/KernelWords.h", text(kKernelWords)},
    {"Vocabulary/Lanes.h", text(kLanes)},
    {"Vocabulary/Math.h", text(kMath)},
    {"Vocabulary/PackedVectors.h", text(kPackedVectors)},
    {"Vocabulary/PerturbedMath.h", text(kPerturbedMath)},
    {"Vocabulary/SimdgroupMatrix.h", text(kSimdgroupMatrix)},
    {"Vocabulary/Simdgroups.h", text(kSimdgroups)},
    {"Vocabulary/SmallFloats.h", text(kSmallFloats)},
    {"Vocabulary/Swizzles.h", text(kSwizzles)},
    {"Vocabulary/Traits.h", text(kTraits)},
    {"Vocabulary/Vectors.h", text(kVectors)},
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
