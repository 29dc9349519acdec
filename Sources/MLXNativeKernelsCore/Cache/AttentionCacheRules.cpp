#include "Cache/AttentionCacheRules.hpp"

#include <algorithm>

#include "Cache/QuantizedStorageRules.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Descriptor = AttentionCacheDescriptor;

constexpr Rule<Descriptor> kRules[] = {
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
};

}  // namespace

std::span<const Rule<AttentionCacheDescriptor>> attentionCacheRules() {
  return kRules;
}

std::optional<Error> firstBroken(const AttentionCacheDescriptor& descriptor) {
  constexpr std::string_view kOp = "AttentionCache";
  auto error = firstBroken(attentionCacheRules(), descriptor, kOp);
  return error || !descriptor.quantized ? error : firstBroken(quantizedStorageRules(), descriptor, kOp);
}

}  // namespace mnk
