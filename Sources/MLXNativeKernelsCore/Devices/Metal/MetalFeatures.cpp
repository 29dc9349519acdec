#include "MetalFeatures.hpp"

#include <TargetConditionals.h>

#include "Devices/Metal/MetalPipeline.hpp"
#include "Support/Format.hpp"

namespace mnk::metal {

namespace {

Error missing(MTL::Device* device, std::string_view feature) {
  return metalError(ErrorCode::unsupported, fmt::format("this GPU lacks {}", feature),
                    text(device->name()) + (TARGET_OS_SIMULATOR ? " in a simulator" : ""),
                    "an Apple GPU since M1 or A14, or a Mac's GPU with Metal 3 and simdgroups of 32 threads",
                    "Run on such a device, or use the Host device.");
}

// Apple's own GPUs have simdgroups of 32 threads. Others only tell through a pipeline.
Result<uint64_t> simdgroupWidth(MTL::Device* device) {
  const LibrarySource source{.value = "kernel void probe() {}\nexport_kernel(probe)\n", .label = "width probe"};
  const auto library = makeUserLibrary(device, source);
  if (!library) return library.error();
  NS::Error* error = nullptr;
  const auto function = owned((*library)->native()->newFunction(nsText("probe")));
  const auto pipeline = owned(function ? device->newComputePipelineState(function.get(), &error) : nullptr);
  if (!pipeline) {
    return metalError(ErrorCode::unsupported, "this GPU makes no compute pipeline", reason(error), "a compute pipeline",
                      "Use another GPU, or the Host device.");
  }
  return uint64_t{pipeline->threadExecutionWidth()};
}

}  // namespace

Result<void> checkFeatures(MTL::Device* device) {
  if (!device->supportsFamily(MTL::GPUFamilyMetal3)) return missing(device, "Metal 3, which brings bfloat");
  if (device->supportsFamily(MTL::GPUFamilyApple7)) return {};
  if (!device->supportsFamily(MTL::GPUFamilyMac2)) return missing(device, "the features of Apple7 or Mac2");
  auto width = simdgroupWidth(device);
  if (!width) return std::move(width).error();
  if (*width != kSimdgroupWidth) return missing(device, fmt::format("simdgroups of {} threads", kSimdgroupWidth));
  return {};
}

}  // namespace mnk::metal
