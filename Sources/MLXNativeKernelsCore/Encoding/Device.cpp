#include "MLXNativeKernels/Device.hpp"

#include "MLXNativeKernels/KernelRegistry.hpp"

namespace mnk {

Device::Device() : registry_(std::make_unique<KernelRegistry>(*this)) {}
Device::~Device() = default;

}  // namespace mnk
