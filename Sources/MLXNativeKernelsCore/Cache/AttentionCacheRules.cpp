#include "Cache/AttentionCacheRules.hpp"

#include <algorithm>

#include "Cache/QuantizedStorageRules.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

using Op = AttentionCacheDescriptor;

auto largestExtent(const Op& op) {
  return std::max({op.kvHeads, op.headDim, op.valueHeadDim, op.capacity, op.sequences});
}

bool hasElements(const Op& op) {
  return !op.quantized || op.quantized->planes != KVQuantizedPlanes::both;
}

constexpr Rule<Op> kRules[] = {
    INVALID_IF(op.slidingWindow && op.slidingWindow->window == 0, "a sliding window sees nothing", "a window of 0",
               "at least 1 position, the row's own", "Pass the model's window, or leave the sliding window out."),

    INVALID_IF(op.kvHeads == 0 || op.headDim == 0 || op.capacity == 0 || op.sequences == 0,
               "the cache would hold nothing",
               fmt::format("kvHeads {}, headDim {}, capacity {}, sequences {}", op.kvHeads, op.headDim, op.capacity,
                           op.sequences),
               "at least 1 of each", "Give every extent a size."),

    INVALID_IF(largestExtent(op) >= kMaxKVExtent, "an extent is too large for the kernels",
               fmt::format("{}", largestExtent(op)), "less than 2^31 on every axis", "Split the cache."),

    INVALID_IF(op.slidingWindow.has_value() && op.capacity < op.pinned + op.slidingWindow->slots(),
               "the capacity is too small for the sliding window", fmt::format("{}", op.capacity),
               fmt::format("at least {}: {} pinned, a window of {}, and {} for a step of {} rows or a draft of {}",
                           op.pinned + op.slidingWindow->slots(), op.pinned, op.slidingWindow->window,
                           op.slidingWindow->slots() - op.slidingWindow->window, op.slidingWindow->maxRows,
                           op.slidingWindow->maxDraft),
               "Leave the capacity out, and the cache sizes itself."),

    INVALID_IF(op.latentDim != 0 && op.valueHeadDim != op.latentDim, "values are not the latent part of keys",
               fmt::format("valueHeadDim {}, latentDim {}", op.valueHeadDim, op.latentDim), "the same of both",
               "Leave valueHeadDim out."),

    INVALID_IF(hasElements(op) && !isFloat(op.dtype), "the cache cannot store this dtype", name(op.dtype),
               "f32, f16 or bf16", "Choose a floating-point dtype."),

    INVALID_IF(op.whenFull > KVWrap::ring, "the cache does not say what happens when it is full",
               fmt::format("{}", static_cast<uint32_t>(op.whenFull)), "linear or ring", "Use a value of KVWrap."),

    INVALID_IF(op.pinned != 0 && (op.whenFull != KVWrap::ring || op.pinned >= op.capacity),
               "the cache pins too many positions",
               fmt::format("{} pinned in a {} of {}", op.pinned, op.whenFull == KVWrap::ring ? "ring" : "linear cache",
                           op.capacity),
               "fewer than the capacity of a ring, and none in a linear cache",
               "Pin fewer positions, or let a larger cache overwrite the oldest."),

    INVALID_IF(!op.isStorageOnly &&
                   !hasAttentionKernel(op.headDim, op.valueHeadDim, op.quantized.has_value(), op.latentDim != 0),
               "there is no attention kernel for these head dims",
               fmt::format("{} of keys and {} of values", op.headDim, op.valueHeadDim),
               attentionDimsText(op.quantized.has_value(), op.latentDim != 0),
               "Choose such head dims, or make the cache for storage only if nothing attends to it."),
};

}  // namespace

Error cacheError(std::string_view what, std::string got, std::string expected, std::string_view fix) {
  return {.op = std::string(kCacheName),
          .what = std::string(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = std::string(fix)};
}

void resolveDefaults(AttentionCacheDescriptor& d) {
  if (d.valueHeadDim == 0) d.valueHeadDim = d.latentDim != 0 ? d.latentDim : d.headDim;
  if (d.quantized) {
    if (!hasElements(d)) d.dtype = DType::u8;
    if (!d.quantized->hasQuantizedKeys()) d.quantized->keyBits = 0;
    if (!d.quantized->hasQuantizedValues()) d.quantized->valueBits = 0;
  }
  if (!d.slidingWindow) return;
  d.whenFull = KVWrap::ring;
  if (d.slidingWindow->maxRows == 0) d.slidingWindow->maxRows = SlidingWindow().maxRows;
  // If the capacity of a ring exceeds 32 bits, it is clamped, and the rules reject it.
  if (d.capacity == 0)
    d.capacity = static_cast<uint32_t>(std::min<uint64_t>(d.pinned + d.slidingWindow->slots(), UINT32_MAX));
}

std::span<const Rule<AttentionCacheDescriptor>> attentionCacheRules() {
  return kRules;
}

Result<void> checkRules(const AttentionCacheDescriptor& descriptor) {
  MNK_TRY(checkRules(attentionCacheRules(), descriptor, kCacheName));
  if (descriptor.quantized) MNK_TRY(checkRules(quantizedStorageRules(), descriptor, kCacheName));
  return {};
}

}  // namespace mnk
