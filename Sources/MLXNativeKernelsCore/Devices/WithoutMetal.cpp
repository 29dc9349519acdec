// A stub of the Metal device for systems without Metal, real or, in tests on Linux, software.
#include "MLXNativeKernels/MetalDevice.hpp"

#if !defined(__APPLE__) && !defined(MNK_SOFT_METAL)

namespace mnk::metal {

namespace {

Error noMetal() {
  return {.code = ErrorCode::unsupported,
          .op = "Metal device",
          .what = "this system has no Metal",
          .got = "a non-Apple platform",
          .expected = "macOS or iOS",
          .fix = "Use the Host device here."};
}

}  // namespace

Result<std::shared_ptr<Device>> makeDevice(const Options&) {
  return noMetal();
}
std::vector<std::shared_ptr<Device>> allDevices() {
  return {};
}
Result<std::shared_ptr<Buffer>> wrapBuffer(const std::shared_ptr<Device>&, MTL::Buffer*) {
  return noMetal();
}
MTL::Buffer* nativeBuffer(const std::shared_ptr<Buffer>&) {
  return nullptr;
}
MTL::Device* nativeDevice(const std::shared_ptr<Device>&) {
  return nullptr;
}
MTL::CommandQueue* nativeQueue(const std::shared_ptr<Device>&) {
  return nullptr;
}
Result<std::unique_ptr<Submission>> makeSubmission(const std::shared_ptr<Device>&, MTL::CommandBuffer*,
                                                   std::string_view) {
  return noMetal();
}

}  // namespace mnk::metal

#endif
