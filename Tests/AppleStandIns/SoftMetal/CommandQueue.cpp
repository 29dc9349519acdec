#include "CommandQueue.hpp"

#include <algorithm>
#include <chrono>

#include "SoftEncoder.hpp"

extern "C" void* _Block_copy(const void* block);
extern "C" void _Block_release(const void* block);

namespace softmetal {

namespace {

constexpr NS::UInteger kMaxUncommitted = 64;

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t codeOf(const mnk::Error& error) {
  return error.code == mnk::ErrorCode::outOfMemory ? MTL::CommandBufferErrorOutOfMemory
                                                   : MTL::CommandBufferErrorPageFault;
}

}  // namespace

template <bool IsRetaining>
SoftCommandBuffer* SoftCommandQueue::commandBuffer() {
  if (shallFail(Call::commandBuffer)) return nullptr;
  {
    std::lock_guard lock(mutex);
    if (uncommitted >= kMaxUncommitted) {
      return violate("{} has {} command buffers that are not committed; the next would wait forever", describe(),
                     uncommitted);
    }
    uncommitted += 1;
  }
  auto* buffer = make<SoftCommandBuffer>();
  buffer->queue = Ref<SoftCommandQueue>(this);
  buffer->isRetaining = IsRetaining;
  return autoreleased(buffer);
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
  const bool isDropped = status < MTL::CommandBufferStatusCommitted;
  if (isDropped) {
    std::lock_guard lock(queue->mutex);
    queue->uncommitted -= 1;
    if (std::erase(queue->order, this) > 0) {
      violate("{} was enqueued and never committed; the ones after it would wait forever", describe());
      queue->startReady();
    }
  }
  if (isDropped && machine().callsHandlersOfDropped) {
    isDead = false;
    for (const auto handler : handlers) handler(reinterpret_cast<MTL::CommandBuffer*>(this));
    isDead = true;
  }
  releaseUsed();
  for (const auto handler : std::exchange(handlers, {})) _Block_release(reinterpret_cast<const void*>(handler));
  encoders.clear();
  taken.clear();
  failure = {};
  queue = {};
}

void SoftCommandBuffer::breakRule(std::string sentence) {
  if (firstViolation.empty()) firstViolation = sentence;
  recordViolation(std::move(sentence));
}

void SoftCommandBuffer::use(Object* object) {
  if (!used.insert(object).second) return;
  if (isRetaining) {
    retain(object);
  } else {
    object->unretainedUses += 1;
  }
}

void SoftCommandBuffer::releaseUsed() {
  for (Object* object : std::exchange(used, {})) {
    if (isRetaining) {
      softmetal::release(object);
    } else {
      object->unretainedUses -= 1;
    }
  }
}

bool SoftCommandBuffer::isOpen() {
  if (status < MTL::CommandBufferStatusCommitted) return true;
  violate("{} was sent to {}, which is committed", currentSelector(), describe());
  return false;
}

SoftEncoder* SoftCommandBuffer::computeEncoder() {
  return computeEncoderWithType(MTL::DispatchTypeSerial);
}

SoftEncoder* SoftCommandBuffer::computeEncoderWithType(MTL::DispatchType type) {
  if (!isOpen()) return nullptr;
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
  if (!isOpen()) return;
  std::lock_guard lock(queue->mutex);
  std::lock_guard ours(mutex);
  if (status == MTL::CommandBufferStatusEnqueued) return;
  status = MTL::CommandBufferStatusEnqueued;
  queue->order.push_back(this);
}

void SoftCommandBuffer::commit() {
  if (!isOpen()) return;
  if (openEncoder) breakRule(fmt::format("{} was committed while {} is open", describe(), openEncoder->describe()));
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
    if (status != MTL::CommandBufferStatusEnqueued) queue->order.push_back(this);
    status = MTL::CommandBufferStatusCommitted;
  }
  queue->uncommitted -= 1;
  self = Ref<SoftCommandBuffer>(this);
  queue->startReady();
}

void SoftCommandBuffer::waitUntilCompleted() {
  if (status < MTL::CommandBufferStatusCommitted) {
    violate("waitUntilCompleted was sent to {}, which is not committed: it would wait forever", describe());
    return;
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return status >= MTL::CommandBufferStatusCompleted; });
}

void SoftCommandBuffer::addCompletedHandler(MTL::CommandBufferHandler handler) {
  if (!isOpen()) return;
  handlers.push_back(reinterpret_cast<MTL::CommandBufferHandler>(_Block_copy(reinterpret_cast<const void*>(handler))));
}

Object* SoftCommandBuffer::error() {
  std::lock_guard lock(mutex);
  return retainedInPool(failure);
}

// ---- Execution ----

// The result of a command buffer whose work must not run.
std::optional<std::pair<int64_t, std::string>> SoftCommandBuffer::endBeforeWork() {
  if (isDeviceLost()) return std::pair(int64_t(MTL::CommandBufferErrorDeviceRemoved), "the device is lost");
  if (!firstViolation.empty()) return std::pair(int64_t(MTL::CommandBufferErrorInvalidResource), firstViolation);
  if (injected && injected->when == When::before) return std::pair(injected->code, "made to fail before its work");
  return std::nullopt;
}

// As if the dispatches ran in sequence, each for the same time.
void SoftCommandBuffer::takeSamples() {
  uint64_t dispatches = 0;
  for (const EncoderRecord& encoder : encoders) {
    for (const RecordedStep& step : encoder.steps) {
      if (!step.isBarrier && step.note.empty()) dispatches += 1;
      if (step.samples && device()->about.takesSamples) {
        taken.emplace_back(step.samples, step.sampleIndex, dispatches * kTicksPerDispatch);
      }
    }
  }
  const uint64_t ticks = dispatches * kTicksPerDispatch, start = advanceClock(ticks) - ticks;
  for (auto& [samples, index, value] : taken) value += start;
  simulatedSeconds = static_cast<double>(ticks * kNanosecondsPerTick) * 1e-9;
}

mnk::Result<void> SoftCommandBuffer::fill(mnk::Submission& submission) {
  for (EncoderRecord& encoder : encoders) {
    submission.barrier();
    for (RecordedStep& step : encoder.steps) {
      if (step.isBarrier || !encoder.isConcurrent) submission.barrier();
      if (step.isBarrier || !step.note.empty()) continue;
      if (auto added = submission.dispatch(std::move(step.dispatch)); !added) return added;
    }
  }
  return {};
}

void SoftCommandBuffer::start() {
  {
    std::lock_guard lock(mutex);
    status = MTL::CommandBufferStatusScheduled;
    startTime = secondsNow();
  }
  changed.notify_all();
  expectHandlers();
  // Shared, so that the last reference is not the Host device's copy of the function.
  auto kept = std::make_shared<Ref<SoftCommandBuffer>>(this);
  auto early = endBeforeWork();
  auto submission = device()->host->makeSubmission(labelText());
  if (submission && !early) {
    if (auto filled = fill(**submission); !filled) {
      early = std::pair(codeOf(filled.error()), filled.error().message());
      violate("{}: {}", describe(), filled.error().message());
      submission = device()->host->makeSubmission(labelText());
    }
  }
  takeSamples();
  encoders.clear();
  const auto finished = [kept, early](mnk::SubmissionReport report) {
    SoftCommandBuffer* const buffer = kept->get();
    buffer->complete(std::move(report), early, std::move(*kept));
    arrived();
  };
  mnk::Result<void> committed = submission ? (*submission)->prepare(finished) : submission.error();
  if (committed) committed = (*submission)->commit();
  if (!committed) runOnHandlerThread([finished, error = committed.error()] { finished({.outcome = error}); });
}

// The handlers take over the reference, so that objects are destroyed on their thread and not on the Host device's.
void SoftCommandBuffer::complete(mnk::SubmissionReport report, std::optional<std::pair<int64_t, std::string>> early,
                                 Ref<SoftCommandBuffer> kept) {
  auto end = std::move(early);
  if (!end && !report.outcome) {
    const mnk::Error& error = report.outcome.error();
    end = std::pair(codeOf(error), error.message());
    if (error.code != mnk::ErrorCode::outOfMemory) violate("{}: {}", describe(), error.message());
  }
  if (!end && injected) end = std::pair(injected->code, "made to fail after its work");
  releaseUsed();
  setLastMessage("a command buffer's end");
  {
    std::lock_guard lock(queue->mutex);
    queue->untracked.erase(this);
  }
  {
    std::lock_guard lock(mutex);
    endTime = std::max(secondsNow(), startTime + simulatedSeconds);
    for (const auto& [samples, index, value] : std::exchange(taken, {})) samples->values[index] = end ? 0 : value;
    if (end) failure = Ref<SoftError>::adopt(makeError(kCommandBufferErrorDomain, end->first, end->second));
    status = end ? MTL::CommandBufferStatusError : MTL::CommandBufferStatusCompleted;
  }
  changed.notify_all();
  handOver([kept = std::move(kept)] { kept->runHandlers(); });
}

void SoftCommandBuffer::runHandlers() {
  for (const auto handler : std::exchange(handlers, {})) {
    try {
      const At calling(Place::handler);
      handler(reinterpret_cast<MTL::CommandBuffer*>(this));
    } catch (...) {
      violate("a handler of {} threw an exception; Apple ends the process", describe());
    }
    _Block_release(reinterpret_cast<const void*>(handler));
  }
}

void defineCommands() {
  define<SoftCommandQueue>("MTLCommandQueue")
      .on<&SoftCommandQueue::owner>("device")
      .on<&SoftCommandQueue::commandBuffer<true>>("commandBuffer")
      .on<&SoftCommandQueue::commandBuffer<false>>("commandBufferWithUnretainedReferences");
  define<SoftCommandBuffer>("MTLCommandBuffer")
      .on<&SoftCommandBuffer::device>("device")
      .on<&SoftCommandBuffer::queue>("commandQueue")
      .on<&SoftCommandBuffer::computeEncoder>("computeCommandEncoder")
      .on<&SoftCommandBuffer::computeEncoderWithType>("computeCommandEncoderWithDispatchType:")
      .on<&SoftCommandBuffer::computeEncoderWithPass>("computeCommandEncoderWithDescriptor:")
      .on<&SoftCommandBuffer::enqueue>("enqueue")
      .on<&SoftCommandBuffer::commit>("commit")
      .on<&SoftCommandBuffer::waitUntilCompleted>("waitUntilCompleted")
      .on<&SoftCommandBuffer::addCompletedHandler>("addCompletedHandler:")
      .on<&SoftCommandBuffer::status>("status")
      .on<&SoftCommandBuffer::error>("error")
      .on<&SoftCommandBuffer::startTime>("GPUStartTime")
      .on<&SoftCommandBuffer::endTime>("GPUEndTime");
}

}  // namespace softmetal
