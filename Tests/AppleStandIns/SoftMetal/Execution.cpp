// Runs and completes committed command buffers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "CommandQueue.hpp"
#include "HandlerThread.hpp"
#include "SoftCounters.hpp"

extern "C" void _Block_release(const void* block);

namespace softmetal {

namespace {

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t codeOf(const mnk::Error& error) {
  return error.code == mnk::ErrorCode::outOfMemory ? MTL::CommandBufferErrorOutOfMemory
                                                   : MTL::CommandBufferErrorPageFault;
}

}  // namespace

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
    state = MTL::CommandBufferStatusScheduled;
    startTime = secondsNow();
  }
  changed.notify_all();
  HandlerThread& thread = HandlerThread::shared();
  thread.expect();
  if (!scheduledHandlers.empty()) {
    thread.push([kept = Ref<SoftCommandBuffer>(this)] { kept->runHandlers(kept->scheduledHandlers); });
  }
  // Shared, so that the last reference is not the Host device's copy of the function.
  auto kept = std::make_shared<Ref<SoftCommandBuffer>>(this);
  auto early = endBeforeWork();
  auto submission = device()->host->makeSubmission(labelText());
  if (submission && !early) {
    if (auto filled = fill(**submission); !filled) {
      early = std::pair(codeOf(filled.error()), filled.error().message());
      violate(fmt::format("{}: {}", describe(), filled.error().message()));
      submission = device()->host->makeSubmission(labelText());
    }
  }
  takeSamples();
  encoders.clear();
  const auto finished = [kept, early](mnk::SubmissionReport report) {
    SoftCommandBuffer* const buffer = kept->get();
    buffer->complete(std::move(report), early, std::move(*kept));
    HandlerThread::shared().arrived();
  };
  mnk::Result<void> committed = submission ? (*submission)->prepare(finished) : submission.error();
  if (committed) committed = (*submission)->commit();
  if (!committed) thread.push([finished, error = committed.error()] { finished({.outcome = error}); });
}

// The handlers take over the reference, so that objects are destroyed on their thread and not on the Host device's.
void SoftCommandBuffer::complete(mnk::SubmissionReport report, std::optional<std::pair<int64_t, std::string>> early,
                                 Ref<SoftCommandBuffer> kept) {
  auto end = std::move(early);
  if (!end && !report.outcome) {
    const mnk::Error& error = report.outcome.error();
    end = std::pair(codeOf(error), error.message());
    if (error.code != mnk::ErrorCode::outOfMemory) violate(fmt::format("{}: {}", describe(), error.message()));
  }
  if (!end && injected) end = std::pair(injected->code, "made to fail after its work");
  for (Object* object : std::exchange(used, {})) {
    if (isRetaining) {
      softmetal::release(object);
    } else {
      object->unretainedUses -= 1;
    }
  }
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
    state = end ? MTL::CommandBufferStatusError : MTL::CommandBufferStatusCompleted;
  }
  changed.notify_all();
  handOver([kept = std::move(kept)] { kept->runHandlers(kept->completedHandlers); });
}

void SoftCommandBuffer::runHandlers(std::vector<MTL::CommandBufferHandler>& handlers) {
  for (const auto handler : std::exchange(handlers, {})) {
    try {
      const At calling(Place::handler);
      handler(reinterpret_cast<MTL::CommandBuffer*>(this));
    } catch (...) {
      violate(fmt::format("a handler of {} threw an exception; Apple ends the process", describe()));
    }
    _Block_release(reinterpret_cast<const void*>(handler));
  }
}

}  // namespace softmetal
