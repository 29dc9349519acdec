#include "Cache/AttentionCacheRules.hpp"

#include <algorithm>

#include "Cache/QuantizedStorageRules.hpp"
#include "Ops/FlashDecodeTuning.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Descriptor = AttentionCacheDescriptor;

constexpr Rule<Descriptor> kRules[] = {
    {"a sliding window sees nothing",
     [](const Descriptor& d) { return !d.slidingWindow || d.slidingWindow->window > 0; },
     [](const Descriptor&) { return std::string("a window of 0"); },
     [](const Descriptor&) { return std::string("at least 1 position, the row's own"); },
     "Pass the model's window, or leave the sliding window out."},

    {"the cache would hold nothing",
     [](const Descriptor& d) { return d.kvHeads > 0 && d.headDim > 0 && d.capacity > 0 && d.sequences > 0; },
     [](const Descriptor& d) {
       return fmt::format("kvHeads {}, headDim {}, capacity {}, sequences {}", d.kvHeads, d.headDim, d.capacity,
                          d.sequences);
     },
     [](const Descriptor&) { return std::string("at least 1 of each"); }, "Give every extent a size."},

    {"an extent is too large for the kernels",
     [](const Descriptor& d) {
       return std::max({d.kvHeads, d.headDim, d.valueHeadDim, d.capacity, d.sequences}) < kMaxKVExtent;
     },
     [](const Descriptor& d) {
       return fmt::format("{}", std::max({d.kvHeads, d.headDim, d.valueHeadDim, d.capacity, d.sequences}));
     },
     [](const Descriptor&) { return std::string("less than 2^31 on every axis"); }, "Split the cache."},

    {"the capacity is too small for the sliding window",
     [](const Descriptor& d) { return !d.slidingWindow || d.capacity >= d.pinned + d.slidingWindow->slots(); },
     [](const Descriptor& d) { return fmt::format("{}", d.capacity); },
     [](const Descriptor& d) {
       return fmt::format("at least {}: {} pinned, a window of {}, and {} for a step of {} rows or a draft of {}",
                          d.pinned + d.slidingWindow->slots(), d.pinned, d.slidingWindow->window,
                          d.slidingWindow->slots() - d.slidingWindow->window, d.slidingWindow->maxRows,
                          d.slidingWindow->maxDraft);
     },
     "Leave the capacity out, and the cache sizes itself."},

    {"the cache cannot store this dtype", [](const Descriptor& d) { return d.quantized || isFloat(d.dtype); },
     [](const Descriptor& d) { return std::string(name(d.dtype)); },
     [](const Descriptor&) { return std::string("f32, f16 or bf16"); }, "Choose a floating-point dtype."},

    {"the cache pins too many positions",
     [](const Descriptor& d) { return d.pinned == 0 || (d.whenFull == KVWrap::ring && d.pinned < d.capacity); },
     [](const Descriptor& d) {
       return fmt::format("{} pinned in a {} of {}", d.pinned, d.whenFull == KVWrap::ring ? "ring" : "linear cache",
                          d.capacity);
     },
     [](const Descriptor&) { return std::string("fewer than the capacity of a ring, and none in a linear cache"); },
     "Pin fewer positions, or let a larger cache overwrite the oldest."},

    {"there is no attention kernel for these head dims",
     [](const Descriptor& d) {
       return d.isStorageOnly || hasAttentionKernel(d.headDim, d.valueHeadDim, d.quantized.has_value());
     },
     [](const Descriptor& d) { return fmt::format("{} of keys and {} of values", d.headDim, d.valueHeadDim); },
     [](const Descriptor& d) { return attentionDimsText(d.quantized.has_value()); },
     "Choose such head dims, or make the cache for storage only if nothing attends to it."},
};

}  // namespace

void resolveDefaults(AttentionCacheDescriptor& d) {
  if (d.valueHeadDim == 0) d.valueHeadDim = d.headDim;
  if (!d.slidingWindow) return;
  d.whenFull = KVWrap::ring;
  // A ring that is too large for 32 bits is refused as the largest one.
  if (d.capacity == 0)
    d.capacity = static_cast<uint32_t>(std::min<uint64_t>(d.pinned + d.slidingWindow->slots(), UINT32_MAX));
}

std::span<const Rule<AttentionCacheDescriptor>> attentionCacheRules() {
  return kRules;
}

std::optional<Error> firstBroken(const AttentionCacheDescriptor& descriptor) {
  constexpr std::string_view kOp = "AttentionCache";
  auto error = firstBroken(attentionCacheRules(), descriptor, kOp);
  return error || !descriptor.quantized ? error : firstBroken(quantizedStorageRules(), descriptor, kOp);
}

}  // namespace mnk
