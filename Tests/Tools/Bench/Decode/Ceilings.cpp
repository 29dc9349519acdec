#include <algorithm>

#include "Decode.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr char kReadText[] = R"(
pipeline_constant(bool, isSideBySide, 0);

// Each thread sums `count` vectors: neighbors of one thread, or every one that is as far from the last as there are
// threads in the group.
kernel void readSum(device const uint4* from [[buffer(0)]], device uint* into [[buffer(1)]],
                    constant uint& count [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
                    uint width [[threads_per_threadgroup]], uint place [[thread_index_in_threadgroup]]) {
  const ulong index = ulong(group) * width + place;
  uint4 sums[4] = {uint4(0u), uint4(0u), uint4(0u), uint4(0u)};
  if (isSideBySide) {
    device const uint4* at = from + ulong(group) * width * count + place;
    for (uint i = 0; i < count; i += 4) {
      for (uint j = 0; j < 4; ++j) {
        sums[j] += at[(i + j) * width];
      }
    }
  } else {
    device const uint4* at = from + index * count;
    for (uint i = 0; i < count; i += 4) {
      for (uint j = 0; j < 4; ++j) {
        sums[j] += at[i + j];
      }
    }
  }
  const uint4 sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  into[index] = (sum.x + sum.y) + (sum.z + sum.w);
}
export_kernel(readSum)
)";

// How threads divide a buffer.
struct Share {
  bool isSideBySide;
  uint32_t threads;  // of a threadgroup
  uint32_t count;    // vectors of a thread

  uint64_t bytes() const { return uint64_t{threads} * count * 16; }
};
constexpr Share kShares[] = {{true, 256, 16}, {false, 32, 128}};

std::vector<Plan> planShare(const std::shared_ptr<Device>& device, const std::shared_ptr<Library>& library,
                            const Share& share, uint64_t bytes, uint32_t copies) {
  const uint64_t groups = std::max<uint64_t>(1, (bytes + share.bytes() - 1) / share.bytes());
  std::vector<Plan> plans;
  for (uint32_t i = 0; i < copies; ++i) {
    auto from = makeTensor(device, DType::u8, {groups * share.bytes()});
    auto into = makeTensor(device, DType::u32, {groups * share.threads});
    Dispatch read;
    read.kernel = {library, "readSum", {{0, share.isSideBySide}}};
    read.buffers = {Binding::whole(0, from, Access::read), Binding::whole(1, into, Access::write)};
    read.inlines = {InlineBytes::of(2, share.count)};
    read.grid = {Grid::Unit::threadgroups, {static_cast<uint32_t>(groups), 1, 1}, {share.threads, 1, 1}};
    plans.push_back({.op = "bench", .dispatches = {read}});
  }
  return plans;
}

// Enough accumulators to hide latency, few enough for registers.
constexpr uint64_t kSums = 16;
constexpr uint32_t kThreads = 128;

constexpr char kMultiplyText[] = R"(
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

std::vector<Plan> planReads(const std::shared_ptr<Device>& device, uint64_t bytes, uint32_t copies) {
  auto library = need(device->registry().library({.value = kReadText, .label = "bench"}));
  std::vector<Plan> best;
  double least = 0;
  for (const Share& share : kShares) {
    auto plans = planShare(device, library, share, bytes, copies);
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) times.push_back(secondsOf(device, plans.at(0)));
    const double seconds = median(std::move(times));
    if (best.empty() || seconds < least) {
      least = seconds;
      best = std::move(plans);
    }
  }
  return best;
}

Plan planMultiplies(const std::shared_ptr<Device>& device, uint64_t operations) {
  auto library = need(device->registry().library({.value = kMultiplyText, .label = "bench"}));
  constexpr uint64_t kTurn = kSums * 2 * 8 * 8 * 8 * (kThreads / 32);  // operations of a threadgroup
  constexpr uint64_t kMaxGroups = 4096;                                // enough for any GPU
  const uint64_t turns = (operations + kTurn - 1) / kTurn;
  const uint64_t groups = std::clamp<uint64_t>(turns / 64, 1, kMaxGroups);
  const auto count = static_cast<uint32_t>((turns + groups - 1) / groups);
  auto into = makeTensor(device, DType::f32, {groups * kThreads});
  Dispatch multiply;
  multiply.kernel = {library, "multiplyMatrices", {}};
  multiply.buffers = {Binding::whole(0, into, Access::write)};
  multiply.inlines = {InlineBytes::of(1, count)};
  multiply.grid = {Grid::Unit::threadgroups, {static_cast<uint32_t>(groups), 1, 1}, {kThreads, 1, 1}};
  return {.op = "bench", .dispatches = {multiply}};
}

}  // namespace mnk::bench
