// MTLComputeCommandEncoder. Each call is checked immediately, as Apple's validation does.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "CommandQueue.hpp"
#include "SoftLibrary.hpp"

namespace softmetal {

inline constexpr size_t kBufferIndices = 31, kThreadgroupIndices = 8;
inline constexpr uint64_t kMaxInlineBytes = 4096;

// The binding at a buffer index.
struct BufferSlot {
  SoftBuffer* buffer = nullptr;
  uint64_t offset = 0;
  std::vector<std::byte> bytes;  // set by setBytes:

  bool isEmpty() const { return !buffer && bytes.empty(); }
};

struct SoftEncoder : Object {
  Ref<SoftCommandBuffer> buffer;
  EncoderRecord record;
  bool isEnded = false;
  SoftPipeline* pipeline = nullptr;
  std::array<BufferSlot, kBufferIndices> slots;
  std::array<uint64_t, kThreadgroupIndices> threadgroupBytes{};
  std::vector<std::string> debugGroups;
  std::pair<Ref<SoftSamples>, NS::UInteger> atEnd;  // sampled when the pass ends

  void finish();
  // Records a violation; the work of the command buffer will not run.
  template <typename... Values>
  void breakRule(fmt::format_string<Values...> what, Values&&... values) {
    buffer->breakRule(fmt::format("{} of {}: {}", describe(), buffer->describe(),
                                  fmt::format(what, std::forward<Values>(values)...)));
  }
  // False, with a violation, after the end.
  bool isOpen();

  SoftDevice* device() { return buffer->device(); }
  void endEncoding();
  void pushDebugGroup(Object* text);
  void popDebugGroup();
  void setComputePipelineState(SoftPipeline* newPipeline);
  void setBuffer(SoftBuffer* newBuffer, NS::UInteger offset, NS::UInteger index);
  void setBytes(const void* bytes, NS::UInteger length, NS::UInteger index);
  void setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index);
  template <mnk::Grid::Unit Unit>
  void dispatch(MTL::Size extent, MTL::Size group);
  void memoryBarrier(MTL::BarrierScope scope);
  void sampleCounters(SoftSamples* samples, NS::UInteger index, bool barrier);
  void addSample(SoftSamples* samples, NS::UInteger index);
  void updateFence(SoftFence* fence);
  void waitForFence(SoftFence* fence);

 private:
  bool isIndexFine(NS::UInteger index, size_t count);
  bool isOurs(SoftDevice* other, const Object& object);
};

// Writes the lines of trace() for a command buffer.
void traceSteps(const SoftCommandBuffer& buffer);

}  // namespace softmetal
