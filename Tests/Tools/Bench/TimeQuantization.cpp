#include "TimeQuantization.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "Timing.hpp"
#include "WorkerPool.hpp"

namespace mnk::bench {

namespace {

// Deterministic numbers of both signs and many magnitudes.
Result<void> fill(const Tensor& tensor, uint32_t seed) {
  std::vector<float> numbers(tensor.shape().elementCount());
  for (float& number : numbers) {
    seed = seed * 1664525 + 1013904223;
    number = static_cast<float>(static_cast<int32_t>(seed) >> 8) * 0x1p-20f;
  }
  return tensor.write(std::as_bytes(std::span(numbers)));
}

Result<QuantizedKVPlane> makePlane(const std::shared_ptr<Device>& device, const QuantizationSizes& of) {
  auto row = sizes(of.codec, of.headDim);
  if (!row) return std::move(row).error();
  auto codes = makeTensor(device, DType::u8, {of.heads, of.tokens, row->codeBytes});
  if (!codes) return std::move(codes).error();
  auto scales = makeTensor(device, of.codec.scaleType(), {of.heads, of.tokens});
  if (!scales) return std::move(scales).error();
  return QuantizedKVPlane{.codec = of.codec, .codes = *codes, .scales = *scales};
}

Result<KVCacheQuantize> makeOp(const std::shared_ptr<Device>& device, const QuantizationSizes& of) {
  KVCacheQuantize op{.options = {.candidates = of.candidates}};
  std::vector<Tensor> sources;
  std::vector<QuantizedKVPlane> planes;
  for (uint32_t seed : {1u, 2u}) {
    auto source = makeTensor(device, DType::f32, {of.tokens, of.heads, of.headDim});
    if (!source) return std::move(source).error();
    if (auto filled = fill(*source, seed); !filled) return std::move(filled).error();
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

}  // namespace

Result<QuantizationSeconds> timeQuantization(const host::Options& options, const QuantizationSizes& sizes,
                                             uint32_t repetitions) {
  auto device = host::makeDevice(options);
  if (!device) return std::move(device).error();
  auto op = makeOp(*device, sizes);
  if (!op) return std::move(op).error();
  auto work = plan(*op);
  if (!work) return std::move(work).error();
  auto plain = makeTensor(*device, DType::f32, {sizes.tokens, sizes.heads, sizes.headDim});
  if (!plain) return std::move(plain).error();
  const uint32_t workers = options.workers ? options.workers : host::coreCount();
  const Dispatch& dispatch = work->dispatches.at(0);
  QuantizationSeconds best{.vectors = 2 * sizes.tokens * sizes.heads,
                           .bytesRead = dispatch.countedBytesRead(),
                           .bytesStored = dispatch.countedBytesWritten(),
                           .kernel = INFINITY,
                           .copy = INFINITY};
  for (uint32_t i = 0; i < repetitions; ++i) {
    best.copy = std::min(
        best.copy, copySeconds(*plain, op->keys.tensor, workers) + copySeconds(*plain, op->values->tensor, workers));
    auto seconds = secondsOf(*device, *work);
    if (!seconds) return std::move(seconds).error();
    best.kernel = std::min(best.kernel, *seconds);
  }
  return best;
}

}  // namespace mnk::bench
