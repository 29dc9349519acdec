#include "SoftEncoder.hpp"

#include <fmt/format.h>

#include <cstring>

#include "DispatchMaker.hpp"
#include "SoftCounters.hpp"

namespace softmetal {

void SoftEncoder::finish() {
  if (!isEnded) {
    breakRule("it was released without endEncoding");
    buffer->openEncoder = nullptr;
  }
  slots = {};
  atEnd = {};
  buffer = {};
}

void SoftEncoder::breakRule(std::string_view what) {
  buffer->breakRule(fmt::format("{} of {}: {}", describe(), buffer->describe(), what));
}

bool SoftEncoder::isOpenFor(const char* call) {
  if (!isEnded) return true;
  breakRule(fmt::format("{} was sent after endEncoding", call));
  return false;
}

MTL::DispatchType SoftEncoder::dispatchType() {
  return record.isConcurrent ? MTL::DispatchTypeConcurrent : MTL::DispatchTypeSerial;
}

void SoftEncoder::endEncoding() {
  if (!isOpenFor("endEncoding")) return;
  if (!debugGroups.empty()) {
    breakRule(fmt::format("endEncoding inside of debug group '{}': push and pop do not balance", debugGroups.back()));
  }
  if (auto [samples, index] = std::exchange(atEnd, {}); samples) addSample(samples.get(), index);
  isEnded = true;
  record.label = labelText();
  buffer->hazards.endEncoder();
  buffer->openEncoder = nullptr;
  buffer->encoders.push_back(std::move(record));
}

void SoftEncoder::pushDebugGroup(Object* text) {
  if (!isOpenFor("pushDebugGroup:")) return;
  if (!text) breakRule("pushDebugGroup: has no text");
  debugGroups.push_back(textOf(text, "pushDebugGroup:").value_or(""));
}

void SoftEncoder::popDebugGroup() {
  if (!isOpenFor("popDebugGroup")) return;
  if (debugGroups.empty()) return breakRule("popDebugGroup without a group that is open");
  debugGroups.pop_back();
}

void SoftEncoder::insertDebugSignpost(Object* text) {
  if (isOpenFor("insertDebugSignpost:")) (void)textOf(text, "insertDebugSignpost:");
}

bool SoftEncoder::isOurs(SoftDevice* other, const Object& object) {
  if (other == device()) return true;
  breakRule(fmt::format("{} belongs to another device, {}", object.describe(), other->describe()));
  return false;
}

bool SoftEncoder::isIndexFine(const char* call, NS::UInteger index, size_t count) {
  if (index < count) return true;
  breakRule(fmt::format("{} has index {}, expected at most {}", call, index, count - 1));
  return false;
}

bool SoftEncoder::isOffsetFine(const SoftBuffer& bound, NS::UInteger offset, NS::UInteger index) {
  if (offset < bound.bytes) return true;
  breakRule(fmt::format("offset {} at buffer {} lies beyond the end of {} of {} bytes", offset, index, bound.describe(),
                        bound.bytes));
  return false;
}

void SoftEncoder::setComputePipelineState(SoftPipeline* newPipeline) {
  if (!isOpenFor("setComputePipelineState:")) return;
  pipeline = nullptr;
  if (!usable(newPipeline, "setComputePipelineState:")) return breakRule("setComputePipelineState: has no pipeline");
  if (!isOurs(newPipeline->device(), *newPipeline)) return;
  pipeline = newPipeline;
  buffer->use(newPipeline);
}

void SoftEncoder::setBuffer(SoftBuffer* newBuffer, NS::UInteger offset, NS::UInteger index) {
  if (!isOpenFor("setBuffer:offset:atIndex:") || !isIndexFine("setBuffer:", index, kBufferIndices)) return;
  slots[index] = {};
  if (!newBuffer) return;  // unbinds
  if (!usable(newBuffer, "setBuffer:offset:atIndex:")) return breakRule("setBuffer: has no buffer");
  if (!isOurs(newBuffer->device(), *newBuffer) || !isOffsetFine(*newBuffer, offset, index)) return;
  slots[index] = {newBuffer, offset, {}};
  buffer->use(newBuffer);
}

void SoftEncoder::setBufferOffset(NS::UInteger offset, NS::UInteger index) {
  if (!isOpenFor("setBufferOffset:atIndex:") || !isIndexFine("setBufferOffset:", index, kBufferIndices)) return;
  BufferSlot& slot = slots[index];
  if (!slot.buffer) return breakRule(fmt::format("setBufferOffset: at buffer {}, where no buffer is bound", index));
  if (isOffsetFine(*slot.buffer, offset, index)) slot.offset = offset;
}

void SoftEncoder::setBytes(const void* bytes, NS::UInteger length, NS::UInteger index) {
  if (!isOpenFor("setBytes:length:atIndex:") || !isIndexFine("setBytes:", index, kBufferIndices)) return;
  slots[index] = {};
  if (!bytes || length == 0 || length > kMaxInlineBytes) {
    return breakRule(fmt::format("setBytes: has {} bytes at buffer {}, expected 1 to {}", bytes ? length : 0, index,
                                 kMaxInlineBytes));
  }
  const auto* first = static_cast<const std::byte*>(bytes);
  slots[index].bytes.assign(first, first + length);
  count(&Counters::inlineBytes, length);
}

void SoftEncoder::setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) {
  const char* const call = "setThreadgroupMemoryLength:";
  if (!isOpenFor(call) || !isIndexFine(call, index, kThreadgroupIndices)) return;
  if (length % 16 != 0) return breakRule(fmt::format("{} has {} bytes, expected a multiple of 16", call, length));
  threadgroupBytes[index] = length;
}

void SoftEncoder::dispatchThreads(MTL::Size threads, MTL::Size group) {
  dispatch(mnk::Grid::Unit::threads, threads, group);
}

void SoftEncoder::dispatchThreadgroups(MTL::Size groups, MTL::Size group) {
  dispatch(mnk::Grid::Unit::threadgroups, groups, group);
}

void SoftEncoder::dispatch(mnk::Grid::Unit unit, MTL::Size extent, MTL::Size group) {
  if (!isOpenFor(unit == mnk::Grid::Unit::threads ? "dispatchThreads:" : "dispatchThreadgroups:")) return;
  count(&Counters::dispatches);
  if (auto step = DispatchMaker(*this).make(unit, extent, group)) record.steps.push_back(std::move(*step));
  if (!record.isConcurrent) buffer->hazards.barrier();
}

void SoftEncoder::memoryBarrier(MTL::BarrierScope scope) {
  if (!isOpenFor("memoryBarrierWithScope:")) return;
  if (!(scope & MTL::BarrierScopeBuffers)) return;  // does not order buffers
  count(&Counters::barriers);
  record.steps.push_back({.isBarrier = true});
  buffer->hazards.barrier();
}

void SoftEncoder::memoryBarrierResources(SoftBuffer* const* resources, NS::UInteger number) {
  if (!isOpenFor("memoryBarrierWithResources:count:")) return;
  count(&Counters::barriers);
  record.steps.push_back({.isBarrier = true});
  for (NS::UInteger i = 0; i < number; ++i) {
    SoftBuffer* const each = usable(resources[i], "memoryBarrierWithResources:count:");
    if (each && isOurs(each->device(), *each)) buffer->hazards.barrier(each);
  }
}

void SoftEncoder::useResource(SoftBuffer* resource, MTL::ResourceUsage) {
  if (!isOpenFor("useResource:usage:") || !usable(resource, "useResource:usage:")) return;
  if (isOurs(resource->device(), *resource)) buffer->use(resource);
}

void defineEncoder() {
  define<SoftEncoder>("MTLComputeCommandEncoder")
      .on<&SoftEncoder::labelMessage>("label")
      .on<&SoftEncoder::setLabelMessage>("setLabel:")
      .on<&SoftEncoder::device>("device")
      .on<&SoftEncoder::dispatchType>("dispatchType")
      .on<&SoftEncoder::endEncoding>("endEncoding")
      .on<&SoftEncoder::pushDebugGroup>("pushDebugGroup:")
      .on<&SoftEncoder::popDebugGroup>("popDebugGroup")
      .on<&SoftEncoder::insertDebugSignpost>("insertDebugSignpost:")
      .on<&SoftEncoder::setComputePipelineState>("setComputePipelineState:")
      .on<&SoftEncoder::setBuffer>("setBuffer:offset:atIndex:")
      .on<&SoftEncoder::setBufferOffset>("setBufferOffset:atIndex:")
      .on<&SoftEncoder::setBytes>("setBytes:length:atIndex:")
      .on<&SoftEncoder::setThreadgroupMemoryLength>("setThreadgroupMemoryLength:atIndex:")
      .on<&SoftEncoder::dispatchThreads>("dispatchThreads:threadsPerThreadgroup:")
      .on<&SoftEncoder::dispatchThreadgroups>("dispatchThreadgroups:threadsPerThreadgroup:")
      .on<&SoftEncoder::memoryBarrier>("memoryBarrierWithScope:")
      .on<&SoftEncoder::memoryBarrierResources>("memoryBarrierWithResources:count:")
      .on<&SoftEncoder::useResource>("useResource:usage:")
      .on<&SoftEncoder::sampleCounters>("sampleCountersInBuffer:atSampleIndex:withBarrier:")
      .on<&SoftEncoder::updateFence>("updateFence:")
      .on<&SoftEncoder::waitForFence>("waitForFence:");
}

}  // namespace softmetal
