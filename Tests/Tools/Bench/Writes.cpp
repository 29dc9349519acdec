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

Result<KVCacheWrite> makeWrite(const std::shared_ptr<Device>& device, const Case& of) {
  std::vector<Tensor> tensors;
  for (const DType dtype : {of.source, of.cache}) {
    const bool isSource = tensors.empty();
    for (int plane = 0; plane < 2; ++plane) {
      auto tensor = isSource ? makeTensor(device, dtype, {kTokens, kHeads, kHeadDim})
                             : makeTensor(device, dtype, {kHeads, kTokens, kHeadDim});
      if (!tensor) return std::move(tensor).error();
      tensors.push_back(*tensor);
    }
  }
  KVCacheWrite write{.keys = tensors[0], .values = tensors[1], .into = {.keys = tensors[2], .values = tensors[3]}};
  if (!of.isFused) return write;
  const uint64_t columns = kHeads * kHeadDim;
  auto fused = makeTensor(device, of.source, {kTokens, 6 * columns});
  if (!fused) return std::move(fused).error();
  auto keys = HeadsView::columns(*fused, 4 * columns, kHeads, kHeadDim);
  if (!keys) return std::move(keys).error();
  auto values = HeadsView::columns(*fused, 5 * columns, kHeads, kHeadDim);
  if (!values) return std::move(values).error();
  write.keys = *keys;
  write.values = *values;
  return write;
}

Result<void> bench(uint32_t workers, const Case& of) {
  auto device = host::makeDevice({.workers = workers});
  if (!device) return std::move(device).error();
  auto write = makeWrite(*device, of);
  if (!write) return std::move(write).error();
  auto work = plan(*write);
  if (!work) return std::move(work).error();
  auto plain = makeTensor(*device, of.cache, {kHeads, kTokens, kHeadDim});
  if (!plain) return std::move(plain).error();
  const auto copy = [&]() -> Result<double> {
    return copySeconds(write->into.keys, *plain, workers) + copySeconds(*write->into.values, *plain, workers);
  };
  auto least = leastSeconds(kRepetitions, {copy, [&] { return secondsOf(*device, *work); }});
  if (!least) return std::move(least).error();
  const double copied = least->at(0), kernel = least->at(1);
  const double gigabytes = 2 * static_cast<double>(write->into.keys.byteCount()) / 1e9;
  fmt::print("{}   {:>4} to {:<4}  {:5.1f} MB   memcpy {:6.2f} GB/s   kernel {:6.2f} GB/s   ratio {:.2f}{}\n",
             workersText(workers), name(of.source), name(of.cache), gigabytes * 1e3, gigabytes / copied,
             gigabytes / kernel, kernel / copied, of.isFused ? "   from a fused projection" : "");
  return {};
}

}  // namespace

Result<void> benchWrites() {
  fmt::print("\nKVCacheWrite, keys and values of {} tokens, {} heads of {}, token-major to head-major; bytes stored\n",
             kTokens, kHeads, kHeadDim);
  constexpr Case kCases[] = {{DType::f16, DType::f16},
                             {DType::f32, DType::f16},
                             {DType::f32, DType::bf16},
                             {DType::f32, DType::f32},
                             {DType::f16, DType::f16, true}};
  for (const uint32_t workers : {1u, 2u}) {
    for (const Case& of : kCases) {
      if (auto done = bench(workers, of); !done) return done;
    }
  }
  return {};
}

}  // namespace mnk::bench
