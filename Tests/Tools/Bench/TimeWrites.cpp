#include "TimeWrites.hpp"

#include <algorithm>
#include <cmath>

#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "Timing.hpp"
#include "WorkerPool.hpp"

namespace mnk::bench {

namespace {

Result<KVCacheWrite> makeWrite(const std::shared_ptr<Device>& device, const WriteSizes& sizes) {
  std::vector<Tensor> tensors;
  for (const DType dtype : {sizes.source, sizes.cache}) {
    const bool isSource = tensors.empty();
    for (int plane = 0; plane < 2; ++plane) {
      auto tensor = isSource ? makeTensor(device, dtype, {sizes.tokens, sizes.heads, sizes.headDim})
                             : makeTensor(device, dtype, {sizes.heads, sizes.tokens, sizes.headDim});
      if (!tensor) return std::move(tensor).error();
      tensors.push_back(*tensor);
    }
  }
  KVCacheWrite write{.keys = tensors[0], .values = tensors[1], .into = {.keys = tensors[2], .values = tensors[3]}};
  if (!sizes.isFused) return write;
  const uint64_t columns = sizes.heads * sizes.headDim;
  auto fused = makeTensor(device, sizes.source, {sizes.tokens, 6 * columns});
  if (!fused) return std::move(fused).error();
  auto keys = HeadsView::columns(*fused, 4 * columns, sizes.heads, sizes.headDim);
  if (!keys) return std::move(keys).error();
  auto values = HeadsView::columns(*fused, 5 * columns, sizes.heads, sizes.headDim);
  if (!values) return std::move(values).error();
  write.keys = *keys;
  write.values = *values;
  return write;
}

}  // namespace

Result<WriteSeconds> timeWrites(const host::Options& options, const WriteSizes& sizes, uint32_t repetitions) {
  auto device = host::makeDevice(options);
  if (!device) return std::move(device).error();
  auto write = makeWrite(*device, sizes);
  if (!write) return std::move(write).error();
  auto work = plan(*write);
  if (!work) return std::move(work).error();
  auto plain = makeTensor(*device, sizes.cache, {sizes.heads, sizes.tokens, sizes.headDim});
  if (!plain) return std::move(plain).error();
  const uint32_t workers = options.workers ? options.workers : host::coreCount();
  WriteSeconds best{.bytes = 2 * write->into.keys.byteCount(), .kernel = INFINITY, .copy = INFINITY};
  for (uint32_t i = 0; i < repetitions; ++i) {
    const double copy =
        copySeconds(write->into.keys, *plain, workers) + copySeconds(*write->into.values, *plain, workers);
    best.copy = std::min(best.copy, copy);
    auto seconds = secondsOf(*device, *work);
    if (!seconds) return std::move(seconds).error();
    best.kernel = std::min(best.kernel, *seconds);
  }
  return best;
}

}  // namespace mnk::bench
