#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <new>
#include <vector>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Timing.hpp"

namespace {

thread_local uint64_t allocationCount = 0;

}  // namespace

// Counts a thread's allocations.
void* operator new(size_t bytes) {
  ++allocationCount;
  if (void* memory = std::malloc(std::max<size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace mnk::bench {

namespace {

constexpr uint32_t kLayers = 32, kHeads = 32, kKVHeads = 8, kHeadDim = 128;
constexpr uint32_t kSteps = 300;
constexpr uint32_t kQueued = 4;  // runs of a recorded step that are timed together

struct LayerCost {
  double seconds = 0;      // the median of several steps, per layer
  double allocations = 0;  // in one step, per layer
  double dispatches = 0;
};
// The last is run again, including submission; the others are encoded.
constexpr const char* kCalls[] = {"rotate, append, attend, planned afresh", "rotate, append, attend",
                                  "appendAndAttend, which rotates", "the same, recorded and run again"};
constexpr size_t kRecorded = std::size(kCalls) - 1;
using LayerCosts = std::array<LayerCost, std::size(kCalls)>;

struct Layer {
  AttentionCache cache;
  Tensor queries, keys, values, results;
};

std::vector<Layer> makeLayers(const std::shared_ptr<Device>& device, bool isQuantized) {
  const auto tokens = [&](uint64_t heads) { return makeTensor(device, DType::f16, {heads, kHeadDim}); };
  AttentionCacheDescriptor descriptor{.kvHeads = kKVHeads, .headDim = kHeadDim, .capacity = kSteps};
  if (isQuantized) descriptor.quantized.emplace();
  std::vector<Layer> layers;
  for (uint32_t i = 0; i < kLayers; ++i) {
    layers.push_back({need(AttentionCache::make(device, descriptor)), tokens(kHeads), tokens(kKVHeads),
                      tokens(kKVHeads), tokens(kHeads)});
  }
  return layers;
}

using EncodeLayer = void (*)(Layer&, CommandEncoder&, uint32_t position);

MultiRoPE rotation(const Layer& layer, uint32_t position) {
  MultiRoPE op{.queries = layer.queries, .keys = HeadsView(layer.keys)};
  op.positions = position;
  op.rotary.base = 1e6;
  return op;
}

void encodeRepeated(Layer& layer, CommandEncoder& encoder, uint32_t position) {
  need(encoder.encode(rotation(layer, position)));
  need(layer.cache.append(encoder, layer.keys, layer.values));
  need(layer.cache.attend(encoder, layer.queries, {.output = layer.results}));
}

void encodeOnce(Layer& layer, CommandEncoder& encoder, uint32_t) {
  CacheStep step{.queries = layer.queries, .keys = layer.keys, .values = layer.values};
  step.results.output = layer.results;
  step.rotary.emplace().embedding.base = 1e6;
  need(layer.cache.appendAndAttend(encoder, step));
}

void encodePlanned(Layer& layer, CommandEncoder& encoder, uint32_t position) {
  need(encoder.encode(plan(rotation(layer, position))));
  const auto quantized = layer.cache.quantizedView();
  FlashDecode attention{.queries = layer.queries, .cache = layer.cache.view(), .sequences = {{.length = position + 1}}};
  attention.results.output = layer.results;
  if (quantized) {
    attention.cache = *quantized;
    const KVCacheQuantize op{
        .keys = layer.keys, .values = HeadsView(layer.values), .into = *quantized, .position = position};
    need(encoder.encode(plan(op)));
  } else {
    const KVCacheWrite op{
        .keys = layer.keys, .values = HeadsView(layer.values), .into = layer.cache.view(), .position = position};
    need(encoder.encode(plan(op)));
  }
  need(encoder.encode(plan(attention, *encoder.device())));
}

// Submits several runs while the queue is blocked, so that no kernel runs concurrently.
LayerCost timeRuns(const std::shared_ptr<Device>& device, const RecordedStep& step) {
  std::latch isOpen(1);
  CommandEncoder gate(device);
  need(gate.commit([&](const Result<Summary>&) { isOpen.wait(); }));
  const uint64_t allocated = allocationCount;
  const auto start = std::chrono::steady_clock::now();
  Result<Completion> ran = Completion();
  for (uint32_t run = 0; run < kQueued && ran; ++run) ran = step.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const uint64_t allocations = allocationCount - allocated;
  isOpen.count_down();
  need(need(std::move(ran)).wait());
  constexpr double kEach = kQueued * kLayers;
  return {.seconds = took.count() / kEach, .allocations = static_cast<double>(allocations) / kEach};
}

LayerCosts timeLayer(bool isQuantized) {
  auto device = need(host::makeDevice({.workers = 1}));
  auto layers = makeLayers(device, isQuantized);
  auto recordedLayers = makeLayers(device, isQuantized);
  const auto recorded = need(RecordedStep::record(device, [&](CommandEncoder& encoder) -> Result<void> {
    for (Layer& layer : recordedLayers) encodeOnce(layer, encoder, 0);
    return {};
  }));
  constexpr EncodeLayer kEncode[] = {encodePlanned, encodeRepeated, encodeOnce};
  std::vector<double> times[std::size(kCalls)];
  LayerCosts costs;
  for (uint32_t position = 0; position < kSteps; ++position) {
    for (size_t call = 0; call < std::size(kEncode); ++call) {
      CommandEncoder encoder(device);
      const uint64_t allocated = allocationCount;
      const auto start = std::chrono::steady_clock::now();
      for (Layer& layer : layers) kEncode[call](layer, encoder, position);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      times[call].push_back(took.count() / kLayers);
      costs[call].allocations = static_cast<double>(allocationCount - allocated) / kLayers;
      costs[call].dispatches = static_cast<double>(encoder.summary().total.dispatches) / kLayers;
      if (call + 1 < std::size(kEncode)) continue;  // does not run
      need(need(encoder.commit()).wait());
    }
  }
  costs[kRecorded].dispatches = static_cast<double>(recorded.summary().total.dispatches) / kLayers;
  for (uint32_t position = 0; position + kQueued <= kSteps; position += kQueued) {
    auto ran = timeRuns(device, recorded);
    costs[kRecorded].allocations = ran.allocations;
    times[kRecorded].push_back(ran.seconds);
  }
  for (size_t call = 0; call < costs.size(); ++call) costs[call].seconds = median(std::move(times[call]));
  return costs;
}

}  // namespace

void benchLayer() {
  fmt::print(
      "\nEncoding a decode layer, {} query heads over {} key/value heads of {}: rotate, append, attend; for each of "
      "{}\n",
      kHeads, kKVHeads, kHeadDim, kLayers);
  for (const bool isQuantized : {false, true}) {
    auto costs = timeLayer(isQuantized);
    for (size_t call = 0; call < costs.size(); ++call) {
      const LayerCost& cost = costs[call];
      fmt::print(
          "  {:<12}   {:<38}   {:.1f} dispatches   {:5.1f} allocations   {:6.2f} us, {:5.2f} a dispatch   ratio "
          "{:.2f}\n",
          isQuantized ? "turbo 4 bits" : "f16", kCalls[call], cost.dispatches, cost.allocations, cost.seconds * 1e6,
          cost.seconds / cost.dispatches * 1e6, cost.seconds / costs.front().seconds);
    }
  }
}

}  // namespace mnk::bench
