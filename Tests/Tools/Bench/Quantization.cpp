#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Ops.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr uint64_t kHeads = 8, kHeadDim = 128;
constexpr uint32_t kWorkers = 2;

struct Case {
  KVCodec codec;
  uint32_t candidates;
  uint64_t tokens;
};

QuantizedKVPlane makePlane(const std::shared_ptr<Device>& device, const Case& of) {
  auto row = need(sizes(of.codec, kHeadDim));
  return {.codec = of.codec,
          .codes = makeTensor(device, DType::u8, {kHeads, of.tokens, row.codeBytes}),
          .scales = makeTensor(device, of.codec.scaleType(), {kHeads, of.tokens})};
}

KVCacheQuantize makeOp(const std::shared_ptr<Device>& device, const Case& of) {
  const auto source = [&] { return makeFilled(device, DType::f32, {of.tokens, kHeads, kHeadDim}, -8, 8); };
  return {.keys = source(),
          .values = source(),
          .into = {.keys = makePlane(device, of), .values = makePlane(device, of)},
          .options = {.candidates = of.candidates}};
}

void bench(const Case& of) {
  auto device = need(host::makeDevice({.workers = kWorkers}));
  auto op = makeOp(device, of);
  auto work = need(plan(op));
  auto plain = makeTensor(device, DType::f32, {of.tokens, kHeads, kHeadDim});
  const auto copy = [&] {
    return copySeconds(plain, op.keys.tensor, kWorkers) + copySeconds(plain, op.values->tensor, kWorkers);
  };
  // Storing many tokens with a long search takes seconds.
  auto least =
      leastSeconds(of.tokens > 1 ? kRepetitions / 6 : kRepetitions, {copy, [&] { return secondsOf(device, work); }});
  const double copied = least.at(0), kernel = least.at(1);
  const double gigabytes = static_cast<double>(work.dispatches.at(0).countedBytesRead()) / 1e9;
  fmt::print(
      "{}   {}, {:>13}   {:>11}   {:8.0f} vectors/s   memcpy {:6.2f} GB/s   kernel {:6.3f} GB/s   ratio {:.1f}\n",
      workersText(kWorkers), of.codec.text(), countText(of.candidates, "candidate"), countText(of.tokens, "token"),
      static_cast<double>(2 * of.tokens * kHeads) / kernel, gigabytes / copied, gigabytes / kernel, kernel / copied);
}

}  // namespace

void benchQuantization() {
  fmt::print("\nKVCacheQuantize, keys and values of {} heads of {}, f32, token-major to head-major; bytes read\n",
             kHeads, kHeadDim);
  for (const uint64_t tokens : {uint64_t{1}, uint64_t{4096}}) {
    for (const Case& of : {Case{{.bits = 4}, 1, tokens}, Case{{.bits = 4}, 5, tokens}, Case{{.bits = 4}, 17, tokens},
                           Case{{.bits = 8}, 5, tokens}, Case{{.name = KVCodec::Name::mlx1}, 1, tokens}}) {
      bench(of);
    }
  }
}

}  // namespace mnk::bench
