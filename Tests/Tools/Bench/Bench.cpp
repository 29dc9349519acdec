#include "Bench.h"

#include <cstdio>

#include "MLXNativeKernels/Device.hpp"
#include "NativeAttention.hpp"
#include "TimeEncoding.hpp"
#include "TimeLayer.hpp"
#include "TimeQuantization.hpp"
#include "TimeRotations.hpp"
#include "TimeWrites.hpp"

using namespace mnk;
using namespace mnk::bench;

namespace {

constexpr uint32_t kRepetitions = 30;

bool report(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return false;
}

bool attention(uint32_t workers) {
  const AttentionSizes sizes;
  auto seconds = timeAttention({.workers = workers}, sizes, kRepetitions);
  if (!seconds) return report(seconds.error());
  std::printf("  %u worker%s   plain C++ %6.2f ms   kernel %6.2f ms   ratio %.2f   largest difference %.1e\n", workers,
              workers == 1 ? " " : "s", seconds->native * 1e3, seconds->kernel * 1e3, seconds->kernel / seconds->native,
              seconds->largestDifference);
  return true;
}

bool writes(uint32_t workers, const WriteSizes& sizes) {
  auto seconds = timeWrites({.workers = workers}, sizes, kRepetitions);
  if (!seconds) return report(seconds.error());
  const double gigabytes = static_cast<double>(seconds->bytes) / 1e9;
  std::printf("  %u worker%s   %4s to %-4s  %5.1f MB   memcpy %6.2f GB/s   kernel %6.2f GB/s   ratio %.2f%s\n", workers,
              workers == 1 ? " " : "s", name(sizes.source).data(), name(sizes.cache).data(), gigabytes * 1e3,
              gigabytes / seconds->copy, gigabytes / seconds->kernel, seconds->kernel / seconds->copy,
              sizes.isFused ? "   from a fused projection" : "");
  return true;
}

bool rotations(uint32_t workers, uint32_t tokens) {
  auto seconds = timeRotations({.workers = workers}, {.tokens = tokens}, kRepetitions);
  if (!seconds) return report(seconds.error());
  const double gigabytes = static_cast<double>(seconds->bytes) / 1e9;
  std::printf(
      "  %u worker%s   %5u tokens   memcpy %6.2f GB/s   kernel %6.2f GB/s   ratio %.2f   by a table %6.2f GB/s, made "
      "in "
      "%.0f%% of that time\n",
      workers, workers == 1 ? " " : "s", tokens, gigabytes / seconds->copy, gigabytes / seconds->kernel,
      seconds->kernel / seconds->copy, gigabytes / seconds->table, 100 * seconds->makeTable / seconds->table);
  return true;
}

bool quantization(uint32_t workers, const QuantizationSizes& sizes) {
  // Storing many tokens with a long search takes seconds.
  const uint32_t repetitions = sizes.tokens > 1 ? kRepetitions / 6 : kRepetitions;
  auto seconds = timeQuantization({.workers = workers}, sizes, repetitions);
  if (!seconds) return report(seconds.error());
  const double gigabytes = static_cast<double>(seconds->bytesRead) / 1e9;
  std::printf(
      "  %u worker%s   %s, %2u candidate%s   %4zu token%s   %8.0f vectors/s   memcpy %6.2f GB/s   kernel %6.3f GB/s   "
      "ratio %.1f\n",
      workers, workers == 1 ? " " : "s", sizes.codec.text().c_str(), sizes.candidates,
      sizes.candidates == 1 ? " " : "s", static_cast<size_t>(sizes.tokens), sizes.tokens == 1 ? " " : "s",
      static_cast<double>(seconds->vectors) / seconds->kernel, gigabytes / seconds->copy, gigabytes / seconds->kernel,
      seconds->kernel / seconds->copy);
  return true;
}

bool encoding(Encoded encoded) {
  constexpr uint32_t kFew = 1024, kMany = 16 * kFew;
  std::printf("  %-24s", name(encoded));
  double first = 0, last = 0;
  for (uint32_t n = kFew; n <= kMany; n *= 4) {
    auto seconds = timeEncoding(encoded, n, kRepetitions / 6);
    if (!seconds) return report(seconds.error());
    last = *seconds / n;
    if (n == kFew) first = last;
    std::printf("%3uK %7.2f us   ", n / kFew, last * 1e6);
  }
  std::printf("ratio %.2f\n", last / first);
  return true;
}

bool layer(const char* storage, bool isQuantized) {
  constexpr uint32_t kSteps = 300;
  auto costs = timeLayer(isQuantized, kSteps);
  if (!costs) return report(costs.error());
  const double planned = (*costs)[0].seconds;
  for (size_t call = 0; call < kLayerCalls; ++call) {
    const LayerCost& cost = (*costs)[call];
    std::printf("  %-12s   %-38s   %.1f dispatches   %5.1f allocations   %6.2f us, %5.2f a dispatch   ratio %.2f\n",
                storage, name(static_cast<LayerCall>(call)), cost.dispatches, cost.allocations, cost.seconds * 1e6,
                cost.seconds / cost.dispatches * 1e6, cost.seconds / planned);
  }
  return true;
}

}  // namespace

int bench_run(void) {
  auto device = Device::makeDefault();
  if (!device) return report(device.error()) ? 0 : 1;
  std::printf("%s; the least of %u interleaved runs; a ratio is kernel time over the other's\n\n",
              (*device)->name().c_str(), kRepetitions);

  std::printf("Decode attention, 32 query heads over 8 key/value heads of 128, 4096 keys, f16\n");
  bool good = attention(1) && attention(2);

  std::printf(
      "\nKVCacheWrite, keys and values of 4096 tokens, 8 heads of 128, token-major to head-major; bytes stored\n");
  for (const uint32_t workers : {1u, 2u}) {
    for (const auto& [source, cache] : {std::pair(DType::f16, DType::f16), std::pair(DType::f32, DType::f16),
                                        std::pair(DType::f32, DType::bf16), std::pair(DType::f32, DType::f32)}) {
      good = good && writes(workers, {.source = source, .cache = cache, .tokens = 4096});
    }
    good = good && writes(workers, {.source = DType::f16, .cache = DType::f16, .tokens = 4096, .isFused = true});
  }

  std::printf("\nMultiRoPE, 40 heads of 128, f16, half-split, out of place; bytes written, and as many read\n");
  for (const uint32_t workers : {1u, 2u}) {
    for (const uint32_t tokens : {1u, 32u, 2048u}) good = good && rotations(workers, tokens);
  }

  std::printf("\nKVCacheQuantize, keys and values of 8 heads of 128, f32, token-major to head-major; bytes read\n");
  for (const uint64_t tokens : {uint64_t{1}, uint64_t{4096}}) {
    for (const uint32_t candidates : {1u, 5u, 17u}) {
      good = good && quantization(2, {.codec = {.bits = 4}, .candidates = candidates, .tokens = tokens});
    }
    good = good && quantization(2, {.codec = {.bits = 8}, .candidates = 5, .tokens = tokens});
    good = good && quantization(2, {.codec = {.name = KVCodecName::mlx1}, .candidates = 1, .tokens = tokens});
  }

  std::printf("\nEncoding for 8 heads of 64, f16, for each of n; a ratio is that of 16K to that of 1K\n");
  for (const Encoded encoded : kEncoded) good = good && encoding(encoded);

  std::printf(
      "\nEncoding a decode layer, 32 query heads over 8 key/value heads of 128: rotate, append, attend; for each of "
      "32\n");
  good = good && layer("f16", false) && layer("turbo 4 bits", true);
  return good ? 0 : 1;
}
