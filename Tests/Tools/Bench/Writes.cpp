#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Ops.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr uint64_t kTokens = 4096, kHeads = 8, kHeadDim = 128;

struct Case {
  DType source;
  DType cache;
  bool isFused = false;  // keys and values are columns of a projection, after four queries for each of them
};

KVCacheWrite makeWrite(const std::shared_ptr<Device>& device, const Case& of) {
  const auto source = [&] { return makeTensor(device, of.source, {kTokens, kHeads, kHeadDim}); };
  const auto plane = [&] { return makeTensor(device, of.cache, {kHeads, kTokens, kHeadDim}); };
  KVCacheWrite write{.keys = source(), .values = source(), .into = {.keys = plane(), .values = plane()}};
  if (!of.isFused) return write;
  const uint64_t columns = kHeads * kHeadDim;
  const Tensor fused = makeTensor(device, of.source, {kTokens, 6 * columns});
  write.keys = need(HeadsView::columns(fused, 4 * columns, kHeads, kHeadDim));
  write.values = need(HeadsView::columns(fused, 5 * columns, kHeads, kHeadDim));
  return write;
}

void bench(uint32_t workers, const Case& of) {
  auto device = need(host::makeDevice({.workers = workers}));
  auto write = makeWrite(device, of);
  auto work = need(plan(write));
  auto plain = makeTensor(device, of.cache, {kHeads, kTokens, kHeadDim});
  const auto copy = [&] {
    return copySeconds(write.into.keys, plain, workers) + copySeconds(*write.into.values, plain, workers);
  };
  auto least = leastSeconds(kRepetitions, {copy, [&] { return secondsOf(device, work); }});
  const double copied = least.at(0), kernel = least.at(1);
  const double gigabytes = 2 * static_cast<double>(write.into.keys.byteCount()) / 1e9;
  fmt::print("{}   {:>4} to {:<4}  {:5.1f} MB   memcpy {:6.2f} GB/s   kernel {:6.2f} GB/s   ratio {:.2f}{}\n",
             workersText(workers), name(of.source), name(of.cache), gigabytes * 1e3, gigabytes / copied,
             gigabytes / kernel, kernel / copied, of.isFused ? "   from a fused projection" : "");
}

}  // namespace

void benchWrites() {
  fmt::print("\nKVCacheWrite, keys and values of {} tokens, {} heads of {}, token-major to head-major; bytes stored\n",
             kTokens, kHeads, kHeadDim);
  constexpr Case kCases[] = {{DType::f16, DType::f16},
                             {DType::f32, DType::f16},
                             {DType::f32, DType::bf16},
                             {DType::f32, DType::f32},
                             {DType::f16, DType::f16, true}};
  for (const uint32_t workers : {1u, 2u}) {
    for (const Case& of : kCases) bench(workers, of);
  }
}

}  // namespace mnk::bench
