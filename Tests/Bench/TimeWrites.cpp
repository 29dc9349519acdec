#include "TimeWrites.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "Devices/Host/WorkerPool.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"

namespace mnk::bench {

namespace {

Result<KVCacheWrite> makeWrite(const std::shared_ptr<Device>& device, const WriteSizes& sizes) {
  auto source = Shape::make({sizes.tokens, sizes.heads, sizes.headDim});
  if (!source) return std::move(source).error();
  auto cache = Shape::make({sizes.heads, sizes.tokens, sizes.headDim});
  if (!cache) return std::move(cache).error();
  std::vector<Tensor> tensors;
  for (const auto& [dtype, shape] : {std::pair(sizes.source, *source), std::pair(sizes.source, *source),
                                     std::pair(sizes.cache, *cache), std::pair(sizes.cache, *cache)}) {
    auto tensor = Tensor::zeros(device, dtype, shape);
    if (!tensor) return std::move(tensor).error();
    std::memset(tensor->buffer()->contents(), 1, tensor->byteCount());  // so that every page exists
    tensors.push_back(*tensor);
  }
  return KVCacheWrite{.keys = tensors[0], .values = tensors[1], .into = {.keys = tensors[2], .values = tensors[3]}};
}

double copySeconds(const KVCacheWrite& write, std::vector<std::byte>& from, uint32_t workers) {
  const auto start = std::chrono::steady_clock::now();
  for (const Tensor* target : {&write.into.keys, &*write.into.values}) {
    constexpr uint64_t kPart = 64 * 1024;
    const uint64_t bytes = target->byteCount();
    std::byte* to = target->buffer()->contents();
    host::runInParallel((bytes + kPart - 1) / kPart, workers, [&](uint64_t begin, uint64_t end) {
      std::memcpy(to + begin * kPart, from.data() + begin * kPart, std::min(end * kPart, bytes) - begin * kPart);
    });
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<WriteSeconds> timeWrites(const host::Options& options, const WriteSizes& sizes, uint32_t repetitions) {
  auto device = host::makeDevice(options);
  if (!device) return std::move(device).error();
  auto write = makeWrite(*device, sizes);
  if (!write) return std::move(write).error();
  std::vector<std::byte> plain(write->into.keys.byteCount(), std::byte{1});
  WriteSeconds best{.bytes = 2 * write->into.keys.byteCount(), .kernel = INFINITY, .copy = INFINITY};
  for (uint32_t i = 0; i < repetitions; ++i) {
    best.copy = std::min(best.copy, copySeconds(*write, plain, options.workers ? options.workers : host::coreCount()));
    CommandEncoder step(*device);
    if (auto encoded = step.encode(*write); !encoded) return std::move(encoded).error();
    auto done = step.commit();
    if (!done) return std::move(done).error();
    auto summary = done->wait();
    if (!summary) return std::move(summary).error();
    best.kernel = std::min(best.kernel, summary->deviceSeconds);
  }
  return best;
}

}  // namespace mnk::bench
