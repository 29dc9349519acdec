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

Result<QuantizedKVPlane> makePlane(const std::shared_ptr<Device>& device, const Case& of) {
  auto row = sizes(of.codec, kHeadDim);
  if (!row) return std::move(row).error();
  auto codes = makeTensor(device, DType::u8, {kHeads, of.tokens, row->codeBytes});
  if (!codes) return std::move(codes).error();
  auto scales = makeTensor(device, of.codec.scaleType(), {kHeads, of.tokens});
  if (!scales) return std::move(scales).error();
  return QuantizedKVPlane{.codec = of.codec, .codes = *codes, .scales = *scales};
}

Result<KVCacheQuantize> makeOp(const std::shared_ptr<Device>& device, const Case& of) {
  KVCacheQuantize op{.options = {.candidates = of.candidates}};
  std::vector<Tensor> sources;
  std::vector<QuantizedKVPlane> planes;
  for (int i = 0; i < 2; ++i) {
    auto source = makeFilled(device, DType::f32, {of.tokens, kHeads, kHeadDim}, -8, 8);
    if (!source) return std::move(source).error();
    sources.push_back(*source);
    auto plane = makePlane(device, of);
    if (!plane) return std::move(plane).error();
    planes.push_back(*plane);
  }
  op.keys = sources[0];
  op.values = sources[1];
  op.into = {.keys = planes[0], .values = planes[1]};
  return op;
}

Result<void> bench(const Case& of) {
  auto device = host::makeDevice({.workers = kWorkers});
  if (!device) return std::move(device).error();
  auto op = makeOp(*device, of);
  if (!op) return std::move(op).error();
  auto work = plan(*op);
  if (!work) return std::move(work).error();
  auto plain = makeTensor(*device, DType::f32, {of.tokens, kHeads, kHeadDim});
  if (!plain) return std::move(plain).error();
  const auto copy = [&]() -> Result<double> {
    return copySeconds(*plain, op->keys.tensor, kWorkers) + copySeconds(*plain, op->values->tensor, kWorkers);
  };
  // Storing many tokens with a long search takes seconds.
  auto least =
      leastSeconds(of.tokens > 1 ? kRepetitions / 6 : kRepetitions, {copy, [&] { return secondsOf(*device, *work); }});
  if (!least) return std::move(least).error();
  const double copied = least->at(0), kernel = least->at(1);
  const double gigabytes = static_cast<double>(work->dispatches.at(0).countedBytesRead()) / 1e9;
  fmt::print(
      "{}   {}, {:>13}   {:>11}   {:8.0f} vectors/s   memcpy {:6.2f} GB/s   kernel {:6.3f} GB/s   ratio {:.1f}\n",
      workersText(kWorkers), of.codec.text(), countText(of.candidates, "candidate"), countText(of.tokens, "token"),
      static_cast<double>(2 * of.tokens * kHeads) / kernel, gigabytes / copied, gigabytes / kernel, kernel / copied);
  return {};
}

}  // namespace

Result<void> benchQuantization() {
  fmt::print("\nKVCacheQuantize, keys and values of {} heads of {}, f32, token-major to head-major; bytes read\n",
             kHeads, kHeadDim);
  for (const uint64_t tokens : {uint64_t{1}, uint64_t{4096}}) {
    for (const Case& of : {Case{{.bits = 4}, 1, tokens}, Case{{.bits = 4}, 5, tokens}, Case{{.bits = 4}, 17, tokens},
                           Case{{.bits = 8}, 5, tokens}, Case{{.name = KVCodec::Name::mlx1}, 1, tokens}}) {
      if (auto done = bench(of); !done) return done;
    }
  }
  return {};
}

}  // namespace mnk::bench
