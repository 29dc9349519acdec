#include "MultiplyCeiling.hpp"

#include <algorithm>

#include "Bench/Timing.hpp"
#include "MLXNativeKernels/KernelRegistry.hpp"

namespace mnk::bench::decode {

namespace {

// Enough accumulators to hide latency, few enough for registers.
constexpr uint64_t kSums = 16;
constexpr uint32_t kThreads = 128;

constexpr char kText[] = R"(
kernel void multiplyMatrices(device float* into [[buffer(0)]], constant uint& count [[buffer(1)]],
                             uint index [[thread_position_in_grid]]) {
  simdgroup_half8x8 left[4];
  simdgroup_half8x8 right[4];
  simdgroup_float8x8 sums[16];
  MNK_UNROLL
  for (ushort i = 0; i < 4; ++i) {
    left[i] = make_filled_simdgroup_matrix<half, 8, 8>(half(0.125f * float(i + 1)));
    right[i] = make_filled_simdgroup_matrix<half, 8, 8>(half(0.25f - 0.125f * float(i)));
  }
  MNK_UNROLL
  for (ushort i = 0; i < 16; ++i) {
    sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  for (uint turn = 0; turn < count; ++turn) {
    MNK_UNROLL
    for (ushort i = 0; i < 16; ++i) {
      simdgroup_multiply_accumulate(sums[i], left[i / 4], right[i % 4], sums[i]);
    }
  }
  float total = 0.0f;
  MNK_UNROLL
  for (ushort i = 0; i < 16; ++i) {
    total += sums[i].thread_elements()[0] + sums[i].thread_elements()[1];
  }
  into[index] = total;
}
export_kernel(multiplyMatrices)
)";

}  // namespace

Result<Plan> planMultiplies(const std::shared_ptr<Device>& device, uint64_t operations) {
  auto library = device->registry().library({.value = kText, .label = "decode-bench"});
  if (!library) return std::move(library).error();
  constexpr uint64_t kTurn = kSums * 2 * 8 * 8 * 8 * (kThreads / 32);  // operations of a threadgroup
  constexpr uint64_t kMaxGroups = 4096;                                // enough for any GPU
  const uint64_t turns = (operations + kTurn - 1) / kTurn;
  const uint64_t groups = std::clamp<uint64_t>(turns / 64, 1, kMaxGroups);
  const auto count = static_cast<uint32_t>((turns + groups - 1) / groups);
  auto into = makeTensor(device, DType::f32, {groups * kThreads});
  if (!into) return std::move(into).error();
  Dispatch multiply;
  multiply.kernel = {*library, "multiplyMatrices", {}};
  multiply.buffers = {Binding::whole(0, *into, Access::write)};
  multiply.inlines = {InlineBytes::of(1, count)};
  multiply.grid = {Grid::Unit::threadgroups, {static_cast<uint32_t>(groups), 1, 1}, {kThreads, 1, 1}};
  return Plan{.op = "decode-bench", .dispatches = {multiply}};
}

}  // namespace mnk::bench::decode
