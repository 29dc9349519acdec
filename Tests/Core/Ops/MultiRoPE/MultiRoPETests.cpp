// MultiRoPE on every device against the reference.
#include <cmath>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MultiRoPERun.hpp"

namespace mnk::test {

namespace {

// Every pattern of a 16-bit float that is not a normal number, some of those that are, and the like in f32.
std::vector<uint64_t> unusualPatterns(DType dtype) {
  std::vector<uint64_t> patterns;
  for (uint64_t bits = 0; bits < 0x10000; ++bits) {
    const uint64_t wide = dtype == DType::f32 ? bits << 16 | bits : bits;
    const double size = std::abs(valueOf(dtype, wide));
    if (!std::isfinite(size) || size < (dtype == DType::f16 ? 0x1p-14 : 0x1p-126) || bits % 64 == 1) {
      patterns.push_back(wide);
    }
  }
  return patterns;
}

}  // namespace

TEST(MultiRoPE, FollowsTheReference) {
  runOnEveryDevice(rope::drawnCases(rope::kDraws));
}
TEST(MultiRoPE, FollowsTheReferenceAtItsEdges) {
  runOnEveryDevice(rope::edgeCases());
}

// NaN payloads and subnormals included, as four elements a thread and as one.
TEST(MultiRoPE, KeptElementsKeepTheirBits) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (uint64_t shift : {0, 1}) {
        auto patterns = unusualPatterns(dtype);
        while (patterns.size() % 8 != 0) patterns.push_back(0);
        MultiRoPECase rope{.name = fmt::format("{} shifted by {}", name(dtype), shift),
                           .from = dtype,
                           .into = dtype,
                           .placing = RopePlacing::apart,
                           .fromShift = shift,
                           .tokens = 1,
                           .heads = 1,
                           .keyHeads = 0,
                           .headDim = patterns.size()};
        rope.rotary.ropeDim = 8;
        Seeded random;
        MultiRoPERun opRun(device, rope, random);
        opRun.set("queries", bytesOfBits(dtype, patterns));
        run(device, opRun.op());
        opRun.expectRotated();
      }
    }
  });
}

// A rotation must see what an earlier one of the same submission left. Each adds one slack.
TEST(MultiRoPE, RotationsOfOneEncoderAddUp) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    MultiRoPERun opRun(device, {.name = "12 at once", .tokens = 1, .headDim = 64, .firstPosition = 12}, random);
    const uint64_t count = opRun.before("queries").size() / 4;
    opRun.set("queries", plainRopeElements(random, DType::f32, count));
    CommandEncoder encoder(device);
    for (int64_t part : {3, 4, 5}) {
      MultiRoPE op = opRun.op();
      op.positions = part;
      REQUIRE(encoder.encode(op));
    }
    EXPECT_EQ(encoder.summary().barriers, 2u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    const auto after = opRun.now("queries");
    for (const TurnedElement& element : opRun.expected().queries) {
      const double got = f32At(after, element.into);
      if (std::abs(got - element.value) <= 4 * slackOf(element)) continue;
      return fail(__FILE__, __LINE__,
                  fmt::format("element {}: got {}, expected {}", element.element, got, element.value));
    }
  });
}

}  // namespace mnk::test
