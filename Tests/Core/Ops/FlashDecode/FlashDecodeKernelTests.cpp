// What needs more than a drawn case: merging in the dispatch that makes the parts, threadgroups of fewer simdgroups
// than planned, the range of the halves that matrices have, and a device whose layout of matrices is not known yet.
#include <cmath>
#include <future>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/KVCodecReference.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;
using Kernel = AttentionOptions::Kernel;
using Merge = AttentionOptions::Merge;

// Drawn cases whose splits are merged in the kernel, with scores of a usual size.
std::vector<Case> mergedCases(Kernel kernel) {
  std::vector<Case> cases;
  for (const AttentionKind kind : {AttentionKind::dense, AttentionKind::quantized}) {
    size_t left = 10;
    for (Case& attend : drawnAttentions(kind, 2)) {
      const bool isSplit = attend.options.splits > 1 && attend.longest() > 16 && attend.longest() <= 150;
      const bool isUsual = attend.size <= 16 && attend.sizes.empty() && attend.specials.empty();
      if (left == 0 || !isSplit || !isUsual || (kernel == Kernel::matrix && !attend.fitsMatrices())) continue;
      --left;
      attend.options.kernel = kernel;
      attend.options.merge = Merge::inKernel;
      cases.push_back(attend);
    }
  }
  EXPECT(cases.size() > 8);
  return cases;
}

// Two heads over codes of one.
Case codedCase(const KVCodec& codec, Kernel kernel, uint64_t keys) {
  return {.name = fmt::format("{} over {} keys", codec.text(), keys),
          .keyCodec = codec,
          .valueCodec = codec,
          .kvHeads = 1,
          .sequences = {{0, keys}},
          .givesLogSumExp = true,
          .options = {.kernel = kernel}};
}

// The newest rows of f16, after `before` positions.
Case promptOf(uint64_t headDim, uint64_t rows, uint64_t before) {
  return {.name = fmt::format("{} rows of {}", rows, headDim),
          .cache = DType::f16,
          .headDim = headDim,
          .valueHeadDim = headDim,
          .kvHeads = 1,
          .queries = DType::f16,
          .rows = rows,
          .sequences = {{0, before + rows}},
          .into = DType::f16,
          .options = {}};
}

// Two rows over a latent cache, of elements or of 8 bits.
Case latentPrompt(bool isCoded) {
  Case attend = promptOf(64, 2, 23);
  attend.isLatent = true;
  attend.valueHeadDim = 512;
  attend.group = 20;
  attend.options.scale = 0.07f;
  if (isCoded) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 8};
  return attend;
}

}  // namespace

TEST(FlashDecodeInKernelMerge, AttendsWithSimdgroupsThatShareRows) {
  for (const uint32_t simdgroups : {3u, 4u}) attendOnEveryDevice(mergedCases(Kernel::vector), simdgroups);
}

TEST(FlashDecodeInKernelMerge, AttendsWithMatrices) {
  for (const uint32_t simdgroups : {0u, 3u}) attendOnEveryDevice(mergedCases(Kernel::matrix), simdgroups);
}

TEST(FlashDecodeInKernelMerge, NeedsADeviceThatOrdersThreadgroups) {
  Case attend{.name = "refused", .sequences = {{0, 100}}, .options = {.splits = 4, .merge = Merge::inKernel}};
  const auto fake = FakeDevice::make();
  for (const Result<Plan>& planned : {plan(planOp(attend)), plan(planOp(attend), *fake)}) {
    EXPECT_ERROR(planned, {.code = ErrorCode::unsupported,
                           .op = "FlashDecode",
                           .what = "in-kernel merging needs device-scope memory fences",
                           .got = "without fences",
                           .expected = "language version 3.2",
                           .fix = "Use automatic."});
  }
  // Where nothing is asked for it is done the other way.
  attend.options.merge = Merge::automatic;
  EXPECT_EQ(REQUIRE(plan(planOp(attend), *fake)).dispatches.size(), 2u);
  // A plan compiles and runs nothing.
  EXPECT_EQ(fake->registry().pipelineCount(), 0u);
  EXPECT(fake->committed().empty());
}

// A value in the first tile, and one in a tile that changes what those before it count in. At last, the last key may
// have all the weight, and its value is small beside one that has none.
TEST(FlashDecodeMatrix, ScalesOfValuesMayDifferByAnyFactor) {
  std::vector<Case> cases;
  for (const KVCodec& codec : {KVCodec{.bits = 4}, KVCodec{.bits = 8}, KVCodec{KVCodec::Name::mlx1, 4}}) {
    for (const auto [size, key, rises] : {std::tuple{1e-6f, uint64_t{0}, false},
                                          {1e-3f, 0, false},
                                          {1e3f, 0, false},
                                          {40.0f, 39, false},
                                          {6e4f, 0, true}}) {
      Case& attend = cases.emplace_back(codedCase(codec, Kernel::vector, 40));
      attend.name += fmt::format(", value {} of scale {}", key, size);
      attend.specials = {{.isKey = false, .key = key, .number = size}};
      if (!rises) continue;
      attend.specials.push_back({.isKey = false, .key = 39, .number = 1e-3f});
      attend.specials.push_back({.isKey = true, .key = 39, .number = 60});
    }
  }
  attendOnEveryDevice(cases);
}

// Over one key, a result is its value, and the sum of exponents its score. Rotated one-hot queries have elements of
// equal magnitude, which halves hold exactly, so that results differ by rounding of f32 alone.
TEST(FlashDecodeMatrix, ComputesTheLevelsThatOthersLookUp) {
  Seeded random;
  for (const uint32_t bits : {3u, 5u, 6u, 7u, 8u}) {
    for (uint32_t first = 0; first < 1u << bits; first += 64) {
      const KVCodec codec{.bits = bits};
      Case attend = codedCase(codec, Kernel::matrix, 1);
      attend.capacity = 1;
      PreparedFlashDecode one = prepared(attend, random);
      std::vector<uint32_t> codes;
      for (uint32_t i = 0; i < 64; ++i) codes.push_back((first + 37 * i % 64) % (1u << bits));
      std::vector<float> queries(2 * 64);
      queries[5] = queries[64 + 40] = 1;
      one.inputs["queries"] = rawBytes(queries);
      one.inputs["key codes"] = one.inputs["value codes"] = packed(codec, codes);
      one.inputs["key scales"] = one.inputs["value scales"] = rawBytes(std::vector<uint16_t>{0x3c00});  // 1
      one.expected = attended(planOp(attend), one.inputs);
      const Context context(fmt::format("{} bits, codes from {}", bits, first));
      onEveryDevice([&](const std::shared_ptr<Device>& device) {
        const FlashDecodeRun opRun(device, one, random);
        run(device, opRun.op());
        const auto got = numbersIn<float>(opRun.now("into")), scores = numbersIn<float>(opRun.now("log sum exp"));
        const auto expectNear = [](float x, double due) { EXPECT(std::abs(x - due) <= 1e-6 * (1 + std::abs(due))); };
        for (size_t row = 0; row < 2; ++row) {
          expectNear(scores.at(row), one.expected.at(row).logSumExp);
          for (size_t j = 0; j < 64; ++j) expectNear(got.at(row * 64 + j), one.expected[row].output[j]);
        }
      });
    }
  }
}

TEST(FlashDecodeMatrix, AHandlerOfFinishedWorkDoesNotWaitForTheDevice) {
  const auto device = hostDevice({});
  const auto attend = [&](Kernel kernel) {
    const auto op =
        makeOp(codedCase({.bits = 4}, kernel, 40), [&](std::string_view, DType dtype, const Shape& shape, uint64_t) {
          return REQUIRE(Tensor::zeros(device, dtype, shape));
        });
    CommandEncoder encoder(device, "next");
    return encoder.encode(op);
  };
  std::promise<std::pair<Result<void>, Result<void>>> answered;
  CommandEncoder encoder(device, "first");
  const auto done = REQUIRE(encoder.commit([&](const Result<Summary>&) {
    auto byMatrix = attend(Kernel::matrix);
    answered.set_value({std::move(byMatrix), attend(Kernel::automatic)});
  }));
  const auto [byMatrix, chosen] = answered.get_future().get();
  REQUIRE(done.wait());
  EXPECT_ERROR(byMatrix, {.code = ErrorCode::unsupported, .what = "cannot run the matrix kernel"});
  EXPECT(bool(chosen));
  EXPECT(device->probe().matrixLayout != MatrixLayout::unknown);
  EXPECT(bool(attend(Kernel::matrix)));
  // A plan without a device takes no layout for granted.
  EXPECT_ERROR(plan(planOp(codedCase({.bits = 4}, Kernel::matrix, 40))),
               {.code = ErrorCode::unsupported, .got = "no device", .fix = "Use automatic."});
}

// More rows than fit in threadgroup memory at once, before they attend and after; codes; simdgroups that share rows.
TEST(FlashPrefill, UsesThreadgroupMemoryInTurns) {
  Case quantized = promptOf(256, 50, 3);
  quantized.keyCodec = quantized.valueCodec = KVCodec{.bits = 3};
  quantized.kvHeads = 3;  // enough for threadgroups with more queries than fit at a time
  attendOnEveryDevice({promptOf(128, 25, 0), quantized});
}

// With fewer threads than were planned, as a pipeline may allow. Codes of 8 bits leave room for fewer rows, and four
// simdgroups share rows of a latent cache.
TEST(FlashPrefill, AttendsInTurnsWithFewerSimdgroups) {
  for (const uint32_t simdgroups : {2, 3}) attendOnEveryDevice({promptOf(96, 40, 5), promptOf(256, 40, 5)}, simdgroups);
  for (const uint32_t simdgroups : {4, 6}) attendOnEveryDevice({latentPrompt(false), latentPrompt(true)}, simdgroups);
}

}  // namespace mnk::test
