// The Metal device: runs the kernels on an Apple GPU, with its own objects or the app's. metal-cpp's types are only
// named here. From Objective-C++ pass (__bridge MTL::Buffer*)buffer. What is passed is retained for as long as it is
// needed. Without Metal, every call fails with the code `unsupported`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "MLXNativeKernels/Device.hpp"

namespace MTL {
class Buffer;
class CommandBuffer;
class CommandQueue;
class Device;
}  // namespace MTL

namespace mnk::metal {

struct Options {
  MTL::Device* device = nullptr;       // null: the queue's device, or the system's default
  MTL::CommandQueue* queue = nullptr;  // null: the device's own
  std::string libraryPath;             // the compiled kernels of this package; empty: they are searched for
  // Kernels are compiled from the embedded text, whatever else there is. MNK_METAL_LIBRARY=embedded in the environment
  // does the same.
  bool usesEmbeddedText = false;
  // Each dispatch gets a debug group that names its op, its kernel and the bytes it reads and writes, for captures.
  // MNK_METAL_DESCRIBE=1 in the environment does the same.
  bool describesDispatches = false;
};

// The device's own queue holds 64 command buffers. Submitting more waits until one is done, so a handler of finished
// work should not submit many.
Result<std::shared_ptr<Device>> makeDevice(const Options& options);
// One for each GPU that can run the kernels, the system's default first.
std::vector<std::shared_ptr<Device>> allDevices();

// The app's buffer, without a copy. Its storage may be shared or private; the processor cannot read the latter. Inside
// a submission, dispatches that touch the same bytes are ordered. Between submissions, Metal orders work on tracked
// buffers, and a fence those of this device that bind untracked ones; a command buffer of another queue cannot bind
// them. The app must order its own work on untracked buffers, and work on several buffers over the same memory.
Result<std::shared_ptr<Buffer>> wrapBuffer(const std::shared_ptr<Device>& device, MTL::Buffer* buffer);
// The Metal buffer under a buffer, borrowed; null for one of another device. What the app does with it is not checked:
// reads and writes of its contents do not wait for submitted work, and the app's own work on it is not waited for.
MTL::Buffer* nativeBuffer(const std::shared_ptr<Buffer>& buffer);
// Borrowed; null for another device.
MTL::Device* nativeDevice(const std::shared_ptr<Device>& device);
MTL::CommandQueue* nativeQueue(const std::shared_ptr<Device>& device);

// Records into a command buffer that the app owns and commits itself. Everything is encoded, as one compute encoder
// (several if ops are measured), when the submission is committed; until then the command buffer is untouched. No other
// encoder of it may be open at that moment. The work is finished when the command buffer is, and its time is that of
// all the command buffer; one that is never committed fails when it is released. Until the app has committed, a
// completion's wait does not return, and reading or writing what the work touches fails with wouldDeadlock. Nor does
// such a wait return in a handler that the app itself has added to the command buffer, since the end of the work is
// reported after it; reads and writes do.
Result<std::unique_ptr<Submission>> makeSubmission(const std::shared_ptr<Device>& device,
                                                   MTL::CommandBuffer* commandBuffer, std::string_view label);

}  // namespace mnk::metal
