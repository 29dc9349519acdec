#include <TargetConditionals.h>

#include <algorithm>
#include <iterator>

#include "Devices/Metal/MetalLibrary.hpp"
#include "Devices/Metal/MetalSupport.hpp"
#include "Support/Errors.hpp"

#if TARGET_OS_OSX
#include <IOKit/IOKitLib.h>
#endif

namespace mnk::metal {

NS::String* nsText(std::string_view text) {
  return NS::String::string(std::string(text).c_str(), NS::UTF8StringEncoding);
}

std::string text(const NS::String* text) {
  const char* bytes = text ? text->utf8String() : nullptr;
  return bytes ? bytes : "";
}

std::string reason(const NS::Error* error) {
  std::string description = error ? text(error->localizedDescription()) : "";
  return description.empty() ? "no reason given" : description;
}

Error metalError(ErrorCode code, std::string_view what, std::string_view got, std::string_view expected,
                 std::string_view fix, bool retryable) {
  return makeError(code, kOp, what, got, expected, fix, retryable);
}

namespace {

Error missing(MTL::Device* device, std::string_view feature) {
  return metalError(ErrorCode::unsupported, fmt::format("this GPU lacks {}", feature),
                    text(device->name()) + (TARGET_OS_SIMULATOR ? " in a simulator" : ""),
                    "an Apple GPU since M1 or A14, or a Mac's GPU with Metal 3 and simdgroups of 32 threads",
                    "Run on such a device, or use the Host device.");
}

// Apple GPUs have simdgroups of 32 threads. For others, only a pipeline reports the width.
Result<uint64_t> simdgroupWidth(MTL::Device* device) {
  const LibrarySource source{.value = "kernel void probe() {}\nexport_kernel(probe)\n", .label = "width probe"};
  MNK_TRY(const auto library, makeUserLibrary(device, source));
  NS::Error* error = nullptr;
  const auto function = owned(library->native()->newFunction(nsText("probe")));
  const auto pipeline = owned(function ? device->newComputePipelineState(function.get(), &error) : nullptr);
  if (!pipeline) {
    return metalError(ErrorCode::unsupported, "this GPU makes no compute pipeline", reason(error), "a compute pipeline",
                      "Use another GPU, or the Host device.");
  }
  return uint64_t{pipeline->threadExecutionWidth()};
}

// Metal does not report the number of cores. A Mac's registry does; 0 elsewhere.
uint32_t registeredCores([[maybe_unused]] MTL::Device* device) {
  int32_t cores = 0;
#if TARGET_OS_OSX
  const io_service_t gpu = IOServiceGetMatchingService(0, IORegistryEntryIDMatching(device->registryID()));
  if (gpu == 0) return 0;
  const CFStringRef key = CFStringCreateWithCString(nullptr, "gpu-core-count", kCFStringEncodingUTF8);
  const CFTypeRef number = key ? IORegistryEntryCreateCFProperty(gpu, key, nullptr, 0) : nullptr;
  const bool isNumber = number && CFGetTypeID(number) == CFNumberGetTypeID();
  if (!isNumber || !CFNumberGetValue(static_cast<CFNumberRef>(number), kCFNumberSInt32Type, &cores)) cores = 0;
  if (number) CFRelease(number);
  if (key) CFRelease(key);
  IOObjectRelease(gpu);
#endif
  return static_cast<uint32_t>(std::clamp(cores, 0, 1024));
}

// The largest count of chips with this name: idle threadgroups cost less than idle cores. An "Apple A17 Pro GPU" is a
// phone's.
uint32_t namedCores(std::string_view name) {
  constexpr std::pair<std::string_view, uint32_t> kCores[] = {
      {"Apple A", 6}, {"Ultra", 80}, {"Max", 40}, {"Pro", 20}, {"Apple M", 10}};
  for (const auto& [part, cores] : kCores) {
    if (name.find(part) != std::string_view::npos) return cores;
  }
  return 0;
}

struct Failure {
  MTL::CommandBufferError code;
  ErrorCode means;
  bool retryable;
  std::string_view name;
  std::string_view what;
  std::string_view expected;
  std::string_view fix;
};

constexpr std::string_view kReport = "Please report this with the label and the kernels that ran.";

constexpr Failure kFailures[] = {
    {MTL::CommandBufferErrorInternal, ErrorCode::deviceFault, false, "internal error", "the GPU failed",
     "work that runs to its end", kReport},
    {MTL::CommandBufferErrorTimeout, ErrorCode::timeout, true, "timeout", "the GPU was stopped, it took too long",
     "work that the system lets finish", "Submit less work at a time, or try again when the GPU is less busy."},
    {MTL::CommandBufferErrorPageFault, ErrorCode::pageFault, false, "page fault",
     "a kernel touched memory that is not its own", "accesses inside of bound buffers",
     "Check the sizes that were bound; run the same work on the Host device with full checking."},
    {MTL::CommandBufferErrorAccessRevoked, ErrorCode::deviceLost, false, "access revoked",
     "the system takes no more GPU work of this process", "a process without earlier GPU faults",
     "Correct what failed before, and start the process again."},
    {MTL::CommandBufferErrorNotPermitted, ErrorCode::notPermitted, true, "not permitted",
     "the system forbids GPU work now", "an app in the foreground, or one with a permission for the background",
     "Submit again when the app is active."},
    {MTL::CommandBufferErrorOutOfMemory, ErrorCode::outOfMemory, true, "out of memory", "the GPU had too little memory",
     "buffers that fit into memory together", "Free buffers, or submit less work at a time."},
    {MTL::CommandBufferErrorInvalidResource, ErrorCode::deviceFault, false, "invalid resource",
     "a buffer was gone when the GPU needed it", "buffers that live until the work is done",
     "Keep the app's own buffers until the work is done, and do not make them purgeable."},
    {MTL::CommandBufferErrorMemoryless, ErrorCode::deviceFault, false, "memoryless", "memoryless storage ran out",
     "no memoryless storage", kReport},
    {MTL::CommandBufferErrorDeviceRemoved, ErrorCode::deviceLost, false, "device removed", "the GPU was taken away",
     "a GPU that stays connected", "Make a device of another GPU."},
    {MTL::CommandBufferErrorStackOverflow, ErrorCode::deviceFault, false, "stack overflow",
     "a kernel used more stack than there is", "kernels with small private arrays",
     "Use smaller private arrays and no recursion."},
};

}  // namespace

Result<void> checkFeatures(MTL::Device* device) {
  if (!device->supportsFamily(MTL::GPUFamilyMetal3)) return missing(device, "Metal 3, which brings bfloat");
  if (device->supportsFamily(MTL::GPUFamilyApple7)) return {};
  if (!device->supportsFamily(MTL::GPUFamilyMac2)) return missing(device, "the features of Apple7 or Mac2");
  MNK_TRY(auto width, simdgroupWidth(device));
  if (width != kSimdgroupWidth) return missing(device, fmt::format("simdgroups of {} threads", kSimdgroupWidth));
  return {};
}

DeviceProfile profileOf(MTL::Device* device) {
  DeviceProfile profile;
  constexpr int kFirstApple = MTL::GPUFamilyApple1 - 1;
  for (int generation = 12; generation >= 7 && profile.family.empty(); --generation) {
    if (device->supportsFamily(static_cast<MTL::GPUFamily>(kFirstApple + generation))) {
      profile.family = fmt::format("apple{}", generation);
    }
  }
  if (profile.family.empty()) profile.family = "mac2";
  profile.cores = registeredCores(device);
  if (profile.cores == 0) profile.cores = namedCores(text(device->name()));
  return profile;
}

Error commandBufferError(const NS::Error* error, std::string_view label) {
  const NS::Integer code = error ? error->code() : 0;
  const bool isOfACommandBuffer = error && text(error->domain()) == "MTLCommandBufferErrorDomain";
  const auto* known = std::find_if(std::begin(kFailures), std::end(kFailures), [&](const Failure& failure) {
    return isOfACommandBuffer && static_cast<NS::Integer>(failure.code) == code;
  });
  const Failure unknown{MTL::CommandBufferErrorNone,
                        ErrorCode::deviceFault,
                        false,
                        "unknown error",
                        "the GPU failed",
                        "work that runs to its end",
                        kReport};
  const Failure& failure = known == std::end(kFailures) ? unknown : *known;
  const std::string step = label.empty() ? "" : fmt::format(" in '{}'", label);
  return metalError(failure.means, fmt::format("{}{}", failure.what, step),
                    fmt::format("{} ({}): {}", failure.name, code, reason(error)), failure.expected, failure.fix,
                    failure.retryable);
}

}  // namespace mnk::metal
