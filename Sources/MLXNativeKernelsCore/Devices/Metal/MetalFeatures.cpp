#include "MetalFeatures.hpp"

#include <TargetConditionals.h>

#include <algorithm>

#if TARGET_OS_OSX
#include <IOKit/IOKitLib.h>
#endif

#include "Devices/Metal/MetalPipeline.hpp"
#include "Support/Errors.hpp"

namespace mnk::metal {

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

}  // namespace mnk::metal
