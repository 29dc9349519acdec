#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr uint64_t kHeads = 8, kHeadDim = 128, kTokens = 4096;

// An op, and copies of as many bytes as it stores, or reads if it quantizes.
struct Work {
  std::string name;
  Plan plan;
  std::vector<std::pair<Tensor, Tensor>> copies;  // into, from
  uint64_t vectors = 0;
  uint32_t repetitions = kRepetitions;
};

Work makeWrite(const std::shared_ptr<Device>& device, DType source, DType cache, bool isFused = false) {
  const auto plane = [&] { return makeTensor(device, cache, {kHeads, kTokens, kHeadDim}); };
  const auto tokens = [&] { return makeTensor(device, source, {kTokens, kHeads, kHeadDim}); };
  KVCacheWrite write{.keys = tokens(), .values = tokens(), .into = {.keys = plane(), .values = plane()}};
  if (isFused) {  // keys and values are columns of a projection, after four queries for each of them
    const uint64_t columns = kHeads * kHeadDim;
    const Tensor fused = makeTensor(device, source, {kTokens, 6 * columns});
    write.keys = need(HeadsView::columns(fused, 4 * columns, kHeads, kHeadDim));
    write.values = need(HeadsView::columns(fused, 5 * columns, kHeads, kHeadDim));
  }
  const Tensor plain = plane();
  return {fmt::format("KVCacheWrite, {} tokens, {} to {}{}", kTokens, mnk::name(source), mnk::name(cache),
                      isFused ? ", from a fused projection" : ""),
          need(plan(write)),
          {{write.into.keys, plain}, {*write.into.values, plain}},
          2 * kTokens * kHeads};
}

Work makeRotation(const std::shared_ptr<Device>& device, uint64_t tokens) {
  constexpr uint64_t kRotatedHeads = 40;  // of queries and keys together
  const auto vectors = [&] { return makeTensor(device, DType::f16, {tokens, kRotatedHeads, kHeadDim}); };
  const Tensor from = vectors(), into = vectors();
  return {fmt::format("MultiRoPE, {}, {} heads, f16, out of place", countText(tokens, "token"), kRotatedHeads),
          need(plan(MultiRoPE{.queries = from, .rotatedQueries = into})),
          {{into, from}},
          tokens * kRotatedHeads};
}

Work makeQuantization(const std::shared_ptr<Device>& device, const KVCodec& codec, uint32_t candidates,
                      uint64_t tokens) {
  const auto row = need(sizes(codec, kHeadDim));
  const auto source = [&] { return makeFilled(device, DType::f32, {tokens, kHeads, kHeadDim}, -8, 8); };
  const auto plane = [&] {
    return QuantizedKVPlane{.codec = codec,
                            .codes = makeTensor(device, DType::u8, {kHeads, tokens, row.codeBytes}),
                            .scales = makeTensor(device, codec.scaleType(), {kHeads, tokens})};
  };
  const KVCacheQuantize op{.keys = source(),
                           .values = source(),
                           .into = {.keys = plane(), .values = plane()},
                           .options = {.candidates = candidates}};
  const Tensor plain = makeTensor(device, DType::f32, {tokens, kHeads, kHeadDim});
  // Storing many tokens with a long search takes seconds.
  return {fmt::format("KVCacheQuantize, {}, f32 to {}, {}", countText(tokens, "token"), codec.text(),
                      countText(candidates, "candidate")),
          need(plan(op)),
          {{plain, op.keys.tensor}, {plain, op.values->tensor}},
          2 * tokens * kHeads,
          tokens > 1 ? kRepetitions / 6 : kRepetitions};
}

void measure(const std::shared_ptr<Device>& device, uint32_t workers, const Work& work) {
  double bytes = 0;
  for (const auto& [into, from] : work.copies) bytes += static_cast<double>(into.byteCount());
  const auto copy = [&] {
    double seconds = 0;
    for (const auto& [into, from] : work.copies) seconds += copySeconds(into, from, workers);
    return seconds;
  };
  const auto least = leastSeconds(work.repetitions, {copy, [&] { return secondsOf(device, work.plan); }});
  fmt::print("  {:<9}   {:<68}   memcpy {:6.2f} GB/s   kernel {:6.3f} GB/s, {:9.0f} vectors/s   ratio {:.2f}\n",
             countText(workers, "worker"), work.name, bytes / least[0] / 1e9, bytes / least[1] / 1e9,
             static_cast<double>(work.vectors) / least[1], least[1] / least[0]);
}

}  // namespace

void benchOps() {
  fmt::print("\nOps against memcpy of the same bytes; {} heads of {}, caches are head-major\n", kHeads, kHeadDim);
  constexpr std::pair<DType, DType> kConversions[] = {
      {DType::f16, DType::f16}, {DType::f32, DType::f16}, {DType::f32, DType::bf16}, {DType::f32, DType::f32}};
  const std::pair<KVCodec, uint32_t> codecs[] = {
      {{.bits = 4}, 1}, {{.bits = 4}, 5}, {{.bits = 4}, 17}, {{.bits = 8}, 5}, {{.name = KVCodec::Name::mlx1}, 1}};
  for (const uint32_t workers : {1u, 2u}) {
    const auto device = need(host::makeDevice({.workers = workers}));
    for (const auto& [source, cache] : kConversions) measure(device, workers, makeWrite(device, source, cache));
    measure(device, workers, makeWrite(device, DType::f16, DType::f16, true));
    for (const uint64_t tokens : {1, 32, 2048}) measure(device, workers, makeRotation(device, tokens));
    for (const uint64_t tokens : {uint64_t{1}, kTokens}) {
      for (const auto& [codec, candidates] : codecs) {
        if (workers == 2) measure(device, workers, makeQuantization(device, codec, candidates, tokens));
      }
    }
  }
}

}  // namespace mnk::bench
