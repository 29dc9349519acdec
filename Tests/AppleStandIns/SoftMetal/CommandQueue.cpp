#include "CommandQueue.hpp"

#include <fmt/format.h>

#include "HandlerThread.hpp"
#include "SoftEncoder.hpp"

extern "C" void* _Block_copy(const void* block);
extern "C" void _Block_release(const void* block);

namespace softmetal {

SoftCommandBuffer* SoftCommandQueue::makeCommandBuffer(bool isRetaining) {
  if (shallFail(Call::commandBuffer)) return nullptr;
  {
    std::lock_guard lock(mutex);
    if (uncommitted >= mostUncommitted) {
      violate(fmt::format("{} has {} command buffers that are not committed; the next would wait forever", describe(),
                          uncommitted));
      return nullptr;
    }
    uncommitted += 1;
  }
  auto* buffer = make<SoftCommandBuffer>();
  buffer->queue = Ref<SoftCommandQueue>(this);
  buffer->isRetaining = isRetaining;
  return autoreleased(buffer);
}

SoftCommandBuffer* SoftCommandQueue::commandBufferDescribed(SoftCommandBufferDescriptor* descriptor) {
  auto* const checked = usable(descriptor, "commandBufferWithDescriptor:");
  return checked ? makeCommandBuffer(checked->isRetaining) : nullptr;
}

void SoftCommandQueue::checkOrder(SoftCommandBuffer* committed) {
  auto accesses = committed->hazards.takeUntracked();
  for (const auto& [buffer, earlier] : untracked) {
    for (const UntrackedAccess& before : earlier) {
      for (const UntrackedAccess& after : accesses) {
        if (auto conflict = conflictAcross(after, before)) return committed->breakRule(std::move(*conflict));
      }
    }
  }
  if (!accesses.empty()) untracked.emplace(committed, std::move(accesses));
}

void SoftCommandQueue::startReady() {
  while (!order.empty() && order.front()->self) {
    Ref<SoftCommandBuffer> buffer = std::move(order.front()->self);
    order.pop_front();
    startWork([buffer] { buffer->start(); });
  }
}

void SoftCommandBuffer::finish() {
  if (currentState() < MTL::CommandBufferStatusCommitted) {
    std::lock_guard lock(queue->mutex);
    queue->uncommitted -= 1;
    if (std::erase(queue->order, this) > 0) {
      violate(fmt::format("{} was enqueued and never committed; the ones after it would wait forever", describe()));
      queue->startReady();
    }
  }
  if (currentState() < MTL::CommandBufferStatusCommitted && machine().callsHandlersOfDropped) {
    isDead = false;
    for (const auto handler : completedHandlers) handler(reinterpret_cast<MTL::CommandBuffer*>(this));
    isDead = true;
  }
  for (Object* object : used) {
    if (isRetaining) {
      softmetal::release(object);
    } else {
      object->unretainedUses -= 1;
    }
  }
  used.clear();
  for (auto* handlers : {&scheduledHandlers, &completedHandlers}) {
    for (const auto handler : *handlers) _Block_release(reinterpret_cast<const void*>(handler));
    handlers->clear();
  }
  encoders.clear();
  taken.clear();
  failure = {};
  queue = {};
}

void SoftCommandBuffer::breakRule(std::string sentence) {
  if (firstViolation.empty()) firstViolation = sentence;
  violate(std::move(sentence));
}

void SoftCommandBuffer::use(Object* object) {
  if (!used.insert(object).second) return;
  if (isRetaining) {
    retain(object);
  } else {
    object->unretainedUses += 1;
  }
}

MTL::CommandBufferStatus SoftCommandBuffer::currentState() {
  std::lock_guard lock(mutex);
  return state;
}

bool SoftCommandBuffer::isOpenFor(const char* call) {
  if (currentState() < MTL::CommandBufferStatusCommitted) return true;
  violate(fmt::format("{} was sent to {}, which is committed", call, describe()));
  return false;
}

SoftEncoder* SoftCommandBuffer::computeEncoder() {
  return computeEncoderWithType(MTL::DispatchTypeSerial);
}

SoftEncoder* SoftCommandBuffer::computeEncoderWithType(MTL::DispatchType type) {
  if (!isOpenFor("computeCommandEncoder")) return nullptr;
  if (openEncoder) {
    breakRule(fmt::format("{} cannot make an encoder while {} is open", describe(), openEncoder->describe()));
    return nullptr;
  }
  if (shallFail(Call::encoder)) return nullptr;
  auto* encoder = make<SoftEncoder>();
  encoder->buffer = Ref<SoftCommandBuffer>(this);
  encoder->record.isConcurrent = type == MTL::DispatchTypeConcurrent;
  openEncoder = encoder;
  count(&Counters::encoders);
  return autoreleased(encoder);
}

void SoftCommandBuffer::enqueue() {
  if (!isOpenFor("enqueue")) return;
  std::lock_guard lock(queue->mutex);
  std::lock_guard ours(mutex);
  if (state == MTL::CommandBufferStatusEnqueued) return;
  state = MTL::CommandBufferStatusEnqueued;
  queue->order.push_back(this);
}

void SoftCommandBuffer::commit() {
  if (!isOpenFor("commit")) return;
  if (openEncoder) breakRule(fmt::format("{} was committed while {} is open", describe(), openEncoder->describe()));
  if (!debugGroups.empty()) {
    breakRule(fmt::format("{} was committed inside of debug group '{}'", describe(), debugGroups.back()));
  }
  for (const Object* object : used) {
    if (object->isDead) breakRule(fmt::format("{} uses {}, which is deallocated", describe(), object->describe()));
  }
  traceSteps(*this);
  count(&Counters::commandBuffers);
  injected = injectedEnd();
  std::lock_guard lock(queue->mutex);
  queue->checkOrder(this);
  {
    std::lock_guard ours(mutex);
    if (state != MTL::CommandBufferStatusEnqueued) queue->order.push_back(this);
    state = MTL::CommandBufferStatusCommitted;
  }
  queue->uncommitted -= 1;
  self = Ref<SoftCommandBuffer>(this);
  queue->startReady();
}

void SoftCommandBuffer::wait(MTL::CommandBufferStatus least, const char* call) {
  std::unique_lock lock(mutex);
  if (state < MTL::CommandBufferStatusCommitted) {
    lock.unlock();
    violate(fmt::format("{} was sent to {}, which is not committed: it would wait forever", call, describe()));
    return;
  }
  changed.wait(lock, [&] { return state >= least; });
}

void SoftCommandBuffer::waitUntilScheduled() {
  wait(MTL::CommandBufferStatusScheduled, "waitUntilScheduled");
}

void SoftCommandBuffer::waitUntilCompleted() {
  wait(MTL::CommandBufferStatusCompleted, "waitUntilCompleted");
}

void SoftCommandBuffer::addScheduledHandler(MTL::CommandBufferHandler handler) {
  if (!isOpenFor("addScheduledHandler:")) return;
  scheduledHandlers.push_back(
      reinterpret_cast<MTL::CommandBufferHandler>(_Block_copy(reinterpret_cast<const void*>(handler))));
}

void SoftCommandBuffer::addCompletedHandler(MTL::CommandBufferHandler handler) {
  if (!isOpenFor("addCompletedHandler:")) return;
  completedHandlers.push_back(
      reinterpret_cast<MTL::CommandBufferHandler>(_Block_copy(reinterpret_cast<const void*>(handler))));
}

Object* SoftCommandBuffer::error() {
  std::lock_guard lock(mutex);
  return retainedInPool(failure.get());
}

double SoftCommandBuffer::gpuStartTime() {
  std::lock_guard lock(mutex);
  return startTime;
}

double SoftCommandBuffer::gpuEndTime() {
  std::lock_guard lock(mutex);
  return endTime;
}

void SoftCommandBuffer::pushDebugGroup(Object* text) {
  if (isOpenFor("pushDebugGroup:")) debugGroups.push_back(textOf(text, "pushDebugGroup:").value_or(""));
}

void SoftCommandBuffer::popDebugGroup() {
  if (!isOpenFor("popDebugGroup")) return;
  if (debugGroups.empty()) return breakRule(fmt::format("{}: popDebugGroup without a group", describe()));
  debugGroups.pop_back();
}

void defineCommands() {
  define<SoftCommandQueue>("MTLCommandQueue")
      .on<&SoftCommandQueue::labelMessage>("label")
      .on<&SoftCommandQueue::setLabelMessage>("setLabel:")
      .on<&SoftCommandQueue::device>("device")
      .on<&SoftCommandQueue::commandBuffer>("commandBuffer")
      .on<&SoftCommandQueue::commandBufferUnretained>("commandBufferWithUnretainedReferences")
      .on<&SoftCommandQueue::commandBufferDescribed>("commandBufferWithDescriptor:");
  define<SoftCommandBufferDescriptor>("MTLCommandBufferDescriptor")
      .withAlloc()
      .on<&SoftCommandBufferDescriptor::retainedReferences>("retainedReferences")
      .on<&SoftCommandBufferDescriptor::setRetainedReferences>("setRetainedReferences:")
      .on<&SoftCommandBufferDescriptor::errorOptions>("errorOptions")
      .on<&SoftCommandBufferDescriptor::setErrorOptions>("setErrorOptions:");
  define<SoftCommandBuffer>("MTLCommandBuffer")
      .on<&SoftCommandBuffer::labelMessage>("label")
      .on<&SoftCommandBuffer::setLabelMessage>("setLabel:")
      .on<&SoftCommandBuffer::device>("device")
      .on<&SoftCommandBuffer::commandQueue>("commandQueue")
      .on<&SoftCommandBuffer::retainedReferences>("retainedReferences")
      .on<&SoftCommandBuffer::computeEncoder>("computeCommandEncoder")
      .on<&SoftCommandBuffer::computeEncoderWithType>("computeCommandEncoderWithDispatchType:")
      .on<&SoftCommandBuffer::computeEncoderWithPass>("computeCommandEncoderWithDescriptor:")
      .on<&SoftCommandBuffer::enqueue>("enqueue")
      .on<&SoftCommandBuffer::commit>("commit")
      .on<&SoftCommandBuffer::waitUntilScheduled>("waitUntilScheduled")
      .on<&SoftCommandBuffer::waitUntilCompleted>("waitUntilCompleted")
      .on<&SoftCommandBuffer::addScheduledHandler>("addScheduledHandler:")
      .on<&SoftCommandBuffer::addCompletedHandler>("addCompletedHandler:")
      .on<&SoftCommandBuffer::status>("status")
      .on<&SoftCommandBuffer::error>("error")
      .on<&SoftCommandBuffer::gpuStartTime>("GPUStartTime")
      .on<&SoftCommandBuffer::gpuEndTime>("GPUEndTime")
      .on<&SoftCommandBuffer::gpuStartTime>("kernelStartTime")
      .on<&SoftCommandBuffer::gpuEndTime>("kernelEndTime")
      .on<&SoftCommandBuffer::pushDebugGroup>("pushDebugGroup:")
      .on<&SoftCommandBuffer::popDebugGroup>("popDebugGroup");
}

}  // namespace softmetal
