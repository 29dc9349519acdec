#include <objc/message.h>
#include <objc/runtime.h>

#include <cstring>

#include "Devices/Metal/MetalBuffer.hpp"
#include "Devices/Metal/MetalLibrary.hpp"
#include "Devices/Metal/MetalSubmission.hpp"
#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

// The largest sample buffer, at least on Apple GPUs.
constexpr size_t kMaxSamples = 32 * 1024 / sizeof(MTL::CounterResultTimestamp);

const MTL::CounterSet* timestamps(MTL::Device* device) {
  const NS::Array* sets = device->counterSets();
  for (NS::UInteger i = 0; sets && i < sets->count(); ++i) {
    const auto* set = sets->object<MTL::CounterSet>(i);
    if (text(set->name()) == "timestamp") return set;
  }
  return nullptr;
}

// metal-cpp has only -mutableBytes, which immutable data need not implement.
const void* bytes(const NS::Data* data) {
  return reinterpret_cast<const void* (*)(const void*, SEL)>(&objc_msgSend)(data, sel_registerName("bytes"));
}

MTL::Size size(const Size3& size) {
  return MTL::Size(size[0], size[1], size[2]);
}

void encodeDispatch(MTL::ComputeCommandEncoder& encoder, const ReadyDispatch& ready,
                    std::span<const BoundMemory> memory, const MTL::Buffer* nothing) {
  const Dispatch& dispatch = ready.dispatch;
  encoder.setComputePipelineState(static_cast<const MetalPipeline&>(*ready.pipeline).native());
  for (size_t i = 0; i < dispatch.buffers.size(); ++i) {
    const MTL::Buffer* native = static_cast<const MetalBuffer&>(*memory[i].buffer).native();
    const bool isEmpty = dispatch.buffers[i].length == 0;
    encoder.setBuffer(isEmpty ? nothing : native, isEmpty ? 0 : memory[i].offset, dispatch.buffers[i].index);
  }
  for (const InlineBytes& inlined : dispatch.inlines) {
    encoder.setBytes(inlined.bytes.data(), inlined.bytes.size(), inlined.index);
  }
  for (const ThreadgroupMemory& memory : dispatch.threadgroupMemory) {
    constexpr NS::UInteger kUnit = 16;  // of which a length must be a multiple
    encoder.setThreadgroupMemoryLength((memory.bytes + kUnit - 1) / kUnit * kUnit, memory.index);
  }
  const MTL::Size grid = size(dispatch.grid.extent);
  if (dispatch.grid.unit == Grid::Unit::threads) {
    encoder.dispatchThreads(grid, size(ready.threadgroup));
  } else {
    encoder.dispatchThreadgroups(grid, size(ready.threadgroup));
  }
}

Error cannotEncode(std::string_view object, std::string_view label) {
  return metalError(ErrorCode::deviceFault, fmt::format("Metal returned no {}", object),
                    label.empty() ? "none" : fmt::format("none for '{}'", label), "one from Metal",
                    "Wait for work that is still running, and try again.", true);
}

void appendRegions(std::string& text, std::string_view verb, const Dispatch& dispatch,
                   std::vector<Region> Binding::*regions) {
  bool isFirst = true;
  for (const Binding& binding : dispatch.buffers) {
    for (const Region& region : binding.*regions) {
      if (isFirst) text += fmt::format(" {}", verb);
      isFirst = false;
      text += fmt::format(" {}:{}+{}", binding.index, region.offset, region.rowBytes);
      if (region.rows != 1) text += fmt::format("*{}@{}", region.rows, region.rowStride);
    }
  }
}

}  // namespace

MetalOpTimes::Clocks MetalOpTimes::Clocks::now(MTL::Device* device) {
  Clocks clocks;
  device->sampleTimestamps(&clocks.processor, &clocks.gpu);
  return clocks;
}

std::shared_ptr<MetalOpTimes> MetalOpTimes::make(MTL::Device* device, std::vector<std::string> spans) {
  if (spans.empty() || spans.size() > kMaxSamples / 2) return nullptr;
  const bool betweenDispatches = device->supportsCounterSampling(MTL::CounterSamplingPointAtDispatchBoundary);
  if (!betweenDispatches && !device->supportsCounterSampling(MTL::CounterSamplingPointAtStageBoundary)) return nullptr;
  const MTL::CounterSet* set = timestamps(device);
  if (!set) return nullptr;
  const auto descriptor = owned(MTL::CounterSampleBufferDescriptor::alloc()->init());
  descriptor->setCounterSet(set);
  descriptor->setStorageMode(MTL::StorageModeShared);
  descriptor->setSampleCount(spans.size() * 2);
  auto times = std::make_shared<MetalOpTimes>();
  NS::Error* error = nullptr;
  times->samples_ = owned(device->newCounterSampleBuffer(descriptor.get(), &error));
  times->fence_ = owned(device->newFence());
  if (!times->samples_ || !times->fence_) return nullptr;
  for (const std::string& op : spans) {
    NS::String* name = nsText(op.empty() ? "Custom" : op);
    times->names_.push_back(retained(name ? name : nsText("a name that is not UTF-8")));
  }
  times->device_ = retained(device);
  times->spans_ = std::move(spans);
  times->hasPassPerSpan_ = !betweenDispatches;
  times->start_ = Clocks::now(device);
  return times;
}

MetalOpTimes::~MetalOpTimes() {
  const AutoreleasePool pool;
  names_.clear();
  fence_.reset();
  samples_.reset();
  device_.reset();
}

MTL::ComputeCommandEncoder* MetalOpTimes::makePass(MTL::CommandBuffer& commands, size_t span) const {
  auto* const pass = MTL::ComputePassDescriptor::computePassDescriptor();
  pass->setDispatchType(MTL::DispatchTypeConcurrent);
  auto* const attachment = pass->sampleBufferAttachments()->object(0);
  attachment->setSampleBuffer(samples_.get());
  attachment->setStartOfEncoderSampleIndex(span * 2);
  attachment->setEndOfEncoderSampleIndex(span * 2 + 1);
  auto* const encoder = commands.computeCommandEncoder(pass);
  if (encoder) encoder->setLabel(names_[span].get());
  return encoder;
}

void MetalOpTimes::begin(MTL::ComputeCommandEncoder& encoder, size_t span) const {
  if (!hasPassPerSpan_) {
    encoder.pushDebugGroup(names_[span].get());
    encoder.sampleCountersInBuffer(samples_.get(), span * 2, true);
  } else if (span > 0) {
    encoder.waitForFence(fence_.get());
  }
}

void MetalOpTimes::end(MTL::ComputeCommandEncoder& encoder, size_t span) const {
  if (!hasPassPerSpan_) {
    encoder.sampleCountersInBuffer(samples_.get(), span * 2 + 1, true);
    encoder.popDebugGroup();
  } else if (span + 1 < spans_.size()) {
    encoder.updateFence(fence_.get());
  }
}

std::map<std::string, double> MetalOpTimes::seconds() const {
  std::vector<MTL::CounterResultTimestamp> results(spans_.size() * 2);
  const size_t size = results.size() * sizeof results[0];
  const NS::Data* data = samples_->resolveCounterRange(NS::Range(0, results.size()));
  if (!data || data->length() < size) return {};
  std::memcpy(results.data(), bytes(data), size);

  const Clocks end = Clocks::now(device_.get());
  if (end.gpu <= start_.gpu || end.processor <= start_.processor) return {};
  const double secondsPerTick =
      static_cast<double>(end.processor - start_.processor) / static_cast<double>(end.gpu - start_.gpu) * 1e-9;
  std::map<std::string, double> sums;
  for (size_t span = 0; span < spans_.size(); ++span) {
    const uint64_t from = results[span * 2].timestamp, to = results[span * 2 + 1].timestamp;
    constexpr uint64_t kError = UINT64_MAX;  // MTLCounterErrorValue
    // Some systems leave zeros for samples that were not taken.
    if (from == 0 || from == kError || to == kError || to < from) return {};
    sums[spans_[span]] += static_cast<double>(to - from) * secondsPerTick;
  }
  return sums;
}

Result<void> checkOpen(const MTL::CommandBuffer& commands) {
  if (commands.status() <= MTL::CommandBufferStatusEnqueued) return {};
  return metalError(ErrorCode::invalidArgument, "the command buffer has been committed", "a committed command buffer",
                    "one that can still be encoded into", "Encode before the command buffer is committed.");
}

std::string description(const Dispatch& dispatch) {
  std::string text = fmt::format("{} {}", dispatch.kind.empty() ? "Custom" : dispatch.kind, dispatch.kernel.function);
  if (!dispatch.buffers.empty()) text += " binds";
  for (const Binding& binding : dispatch.buffers) text += fmt::format(" {}:{}", binding.index, binding.length);
  appendRegions(text, dispatch.bytesRead ? "reads some" : "reads", dispatch, &Binding::reads);
  appendRegions(text, dispatch.bytesWritten ? "writes some" : "writes", dispatch, &Binding::writes);
  return text;
}

// Queries the status of an app's command buffer without retaining it, which would hide that the app dropped it. The
// command buffer owns the completion handler, which owns the Work. Work clears this pointer before the command buffer
// is destroyed, and waits for a concurrent query.
class MetalSubmission::AppBuffer {
 public:
  explicit AppBuffer(const MTL::CommandBuffer* commands) : commands_(commands) {}

  WorkProgress progress() {
    const AutoreleasePool pool;
    std::lock_guard lock(mutex_);
    if (!commands_) return WorkProgress::underWay;
    const MTL::CommandBufferStatus status = commands_->status();
    if (status == MTL::CommandBufferStatusCompleted) return WorkProgress::done;
    if (status == MTL::CommandBufferStatusError) return WorkProgress::failed;
    return status > MTL::CommandBufferStatusEnqueued ? WorkProgress::underWay : WorkProgress::notStarted;
  }
  void forget() {
    std::lock_guard lock(mutex_);
    commands_ = nullptr;
  }

 private:
  std::mutex mutex_;
  const MTL::CommandBuffer* commands_;
};

// State that lives until the GPU is done. Only the command buffer's completion handler owns it: if the handler is
// destroyed without being called, the command buffer was never committed, and the work has failed.
struct MetalSubmission::Work {
  std::shared_ptr<Device> device;
  std::vector<Step> steps;
  std::vector<BoundMemory> memory;
  std::string label;
  std::shared_ptr<AppBuffer> appBuffer;
  std::shared_ptr<MetalOpTimes> opTimes;           // null: not measured
  std::function<void(SubmissionReport)> finished;  // null after the call
  bool isCommitted = false;                        // if false, there is nothing to report

  ~Work() {
    if (appBuffer) appBuffer->forget();
    if (finished) finish({.outcome = guarded(kOp, [&]() -> Result<void> { return notCommitted(); })});
  }

  Error notCommitted() const {
    return metalError(ErrorCode::invalidArgument, "the app's command buffer was released",
                      label.empty() ? "no commit" : fmt::format("no commit of '{}'", label),
                      "a command buffer that the app commits", "Commit it after encoding.");
  }

  void finish(SubmissionReport report) noexcept {
    // Release everything before reporting that the work is done.
    steps.clear();
    memory.clear();
    opTimes.reset();
    device.reset();
    try {
      if (const auto call = std::exchange(finished, nullptr); call && isCommitted) call(std::move(report));
    } catch (...) {  // the caller's code; there is no one to report to
    }
  }

  void finish(const MTL::CommandBuffer& done) noexcept {
    const AutoreleasePool pool;
    SubmissionReport report;
    report.deviceSeconds = done.GPUEndTime() - done.GPUStartTime();
    const MTL::CommandBufferStatus status = done.status();
    if (status == MTL::CommandBufferStatusCompleted) {
      // If there is no memory for the times, they stay unknown.
      (void)guarded(kOp, [&]() -> Result<void> {
        if (opTimes) report.opSeconds = opTimes->seconds();
        return {};
      });
    } else {
      // Metal may also call the handlers of a command buffer that is dropped.
      report.outcome = guarded(kOp, [&]() -> Result<void> {
        return status == MTL::CommandBufferStatusError ? commandBufferError(done.error(), label) : notCommitted();
      });
    }
    finish(std::move(report));
  }
};

MetalSubmission::MetalSubmission(std::shared_ptr<Device> device, Target target, std::string_view label)
    : device_(std::move(device)), target_(std::move(target)), label_(label) {
  if (target_.appBuffer) appBuffer_ = std::make_shared<AppBuffer>(target_.appBuffer.get());
}

MetalSubmission::~MetalSubmission() {
  const AutoreleasePool pool;
  prepared_ = {};
  target_ = {};
}

Result<void> MetalSubmission::dispatch(SharedDispatch shared, std::span<BoundMemory> memory) {
  bool isOurs = dynamic_cast<const MetalPipeline*>(shared->pipeline.get());
  for (const BoundMemory& bound : memory) isOurs = isOurs && dynamic_cast<const MetalBuffer*>(bound.buffer.get());
  if (!isOurs) {
    return metalError(ErrorCode::invalidArgument, "the pipeline or a buffer is not of a Metal device",
                      shared->dispatch.kernel.text(), "a pipeline and buffers of this device",
                      "Make them with the device that runs the dispatch.");
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    const bool isEmpty = shared->dispatch.buffers[i].length == 0;
    if (isEmpty || !static_cast<const MetalBuffer&>(*memory[i].buffer).isUntracked()) continue;
    if (!canOrder()) {
      return metalError(ErrorCode::unsupported, "an untracked buffer is used in a command buffer of another queue",
                        shared->dispatch.kernel.text(),
                        "tracked buffers, or a command buffer of the queue that the device was made with",
                        "Make the device with the queue of the command buffer: a fence then orders the work.");
    }
    bindsUntracked_ = true;
  }
  const size_t firstMemory = memory_.size();
  memory_.insert(memory_.end(), std::move_iterator(memory.begin()), std::move_iterator(memory.end()));
  steps_.emplace_back(Bound{std::move(shared), firstMemory});
  return {};
}

// Fences order work of one queue.
bool MetalSubmission::canOrder() const {
  const AutoreleasePool pool;
  return !target_.appBuffer || target_.appBuffer->commandQueue() == target_.queue.get();
}

void MetalSubmission::barrier() {
  steps_.emplace_back(Barrier{});
}

Result<void> MetalSubmission::encode(const Prepared& prepared, std::span<const Step> steps,
                                     std::span<const BoundMemory> memory) const {
  MTL::CommandBuffer& commands = *prepared.commands.get();
  MNK_TRY(checkOpen(commands));
  const std::shared_ptr<Work> work = prepared.work;  // a block would capture a reference to `prepared`
  // First, so that what a failing call has encoded into the app's command buffer lives until that is done.
  commands.addCompletedHandler(^(MTL::CommandBuffer* done) {
    work->finish(*done);
  });
  const MetalOpTimes* const times = work->opTimes.get();
  MTL::ComputeCommandEncoder* encoder = nullptr;
  auto description = prepared.descriptions.begin();
  for (size_t span = 0; !steps.empty(); ++span) {
    const auto part = times ? firstSpan(steps) : steps;
    const bool isPass = times && times->hasPassPerSpan();
    if (isPass) {
      encoder = times->makePass(commands, span);
    } else if (!encoder) {
      encoder = commands.computeCommandEncoder(MTL::DispatchTypeConcurrent);
      if (encoder) encoder->setLabel(prepared.label.get());
    }
    if (!encoder) return cannotEncode("command encoder", label_);
    if (span == 0 && bindsUntracked_) encoder->waitForFence(target_.fence.get());
    if (times) times->begin(*encoder, span);
    for (const Step& step : part) {
      const auto* bound = std::get_if<Bound>(&step);
      if (!bound) {
        encoder->memoryBarrier(MTL::BarrierScopeBuffers);
        continue;
      }
      if (target_.describesDispatches) encoder->pushDebugGroup((description++)->get());
      encodeDispatch(*encoder, *bound->shared, memory.subspan(bound->firstMemory), target_.nothing.get());
      if (target_.describesDispatches) encoder->popDebugGroup();
    }
    if (times) times->end(*encoder, span);
    steps = steps.subspan(part.size());
    if (steps.empty() && bindsUntracked_) encoder->updateFence(target_.fence.get());
    if (isPass || steps.empty()) encoder->endEncoding();
  }
  return {};
}

// A sequence of dispatches of one op, with the barriers before, between and after them.
std::span<const MetalSubmission::Step> MetalSubmission::firstSpan(std::span<const Step> steps) {
  const std::string* op = nullptr;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* bound = std::get_if<Bound>(&steps[i]);
    if (!bound) continue;
    if (op && bound->shared->dispatch.kind != *op) return steps.first(i);
    op = &bound->shared->dispatch.kind;
  }
  return steps;
}

std::shared_ptr<MetalOpTimes> MetalSubmission::makeOpTimes() const {
  std::vector<std::string> ops;
  for (std::span<const Step> steps = steps_; !steps.empty(); steps = steps.subspan(firstSpan(steps).size())) {
    const std::string* op = nullptr;
    for (const Step& step : firstSpan(steps)) {
      if (const auto* bound = std::get_if<Bound>(&step)) op = &bound->shared->dispatch.kind;
    }
    ops.push_back(op ? *op : "");
  }
  return MetalOpTimes::make(target_.queue->device(), std::move(ops));
}

std::function<WorkProgress()> MetalSubmission::progress() const {
  if (!appBuffer_) return {};
  return [appBuffer = appBuffer_] { return appBuffer->progress(); };
}

Result<void> MetalSubmission::prepare(std::function<void(SubmissionReport)> finished) {
  const AutoreleasePool pool;
  Prepared prepared;
  for (const Step& step : steps_) {
    const auto* bound = std::get_if<Bound>(&step);
    if (!bound || !target_.describesDispatches) continue;
    NS::String* text = nsText(description(bound->shared->dispatch));
    prepared.descriptions.push_back(retained(text ? text : nsText("a name that is not UTF-8")));
  }
  prepared.label = retained(nsText(label_.empty() ? "MLXNativeKernels" : label_));
  prepared.work = std::make_shared<Work>();
  prepared.work->device = device_;
  prepared.work->label = label_;
  prepared.work->finished = std::move(finished);
  if (measuresOps_) prepared.work->opTimes = makeOpTimes();
  prepared.commands = target_.appBuffer;
  if (prepared.commands) {
    MNK_TRY(checkOpen(*prepared.commands.get()));
  } else {
    // Work owns every buffer and pipeline until the end, so Metal need not retain them.
    prepared.commands = retained(target_.queue->commandBufferWithUnretainedReferences());
    if (!prepared.commands) return cannotEncode("command buffer", label_);
    prepared.commands->setLabel(prepared.label.get());
    MNK_TRY(encode(prepared, steps_, memory_));
  }
  prepared_ = std::move(prepared);
  return {};
}

void MetalSubmission::discardPrepared() noexcept {
  const AutoreleasePool pool;
  prepared_ = {};
}

Result<void> MetalSubmission::commit() noexcept {
  const AutoreleasePool pool;
  const Prepared prepared = std::exchange(prepared_, {});
  // Before the app's command buffer has the handler, which another thread may run.
  Work& work = *prepared.work;
  work.appBuffer = appBuffer_;
  work.steps = std::move(steps_);
  work.memory = std::move(memory_);
  work.isCommitted = true;
  if (!appBuffer_) {
    prepared.commands->commit();
    return {};
  }
  auto encoded = guarded(kOp, [&] { return encode(prepared, work.steps, work.memory); });
  if (!encoded) work.isCommitted = false;
  return encoded;
}

}  // namespace mnk::metal
