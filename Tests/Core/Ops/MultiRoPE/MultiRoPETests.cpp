// MultiRoPE on every device against the reference, and elements that must keep their bits.
#include <cmath>

#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
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
  patterns.resize((patterns.size() + 7) / 8 * 8);
  return patterns;
}

// For three dtypes, as four elements a thread and as one.
void forEveryRotation(MultiRoPECase rope, void (*body)(const std::shared_ptr<Device>& device, MultiRoPECase rope)) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (uint64_t shift : {0, 1}) {
        const Context context(fmt::format("{} shifted by {}", name(dtype), shift));
        rope.from = rope.into = dtype;
        rope.fromShift = shift;
        body(device, rope);
      }
    }
  });
}

}  // namespace

TEST(MultiRoPE, FollowsTheReference) {
  runOnEveryDevice(rope::drawnCases(rope::kDraws));
}
TEST(MultiRoPE, FollowsTheReferenceAtItsEdges) {
  runOnEveryDevice(rope::edgeCases());
}

// NaN payloads and subnormals included.
TEST(MultiRoPE, KeptElementsKeepTheirBits) {
  forEveryRotation({.placing = RopePlacing::apart, .tokens = 1, .heads = 1, .keyHeads = 0, .rotary = {.ropeDim = 8}},
                   [](const std::shared_ptr<Device>& device, MultiRoPECase rope) {
                     const auto patterns = unusualPatterns(rope.from);
                     rope.headDim = patterns.size();
                     Seeded random;
                     MultiRoPERun opRun(device, rope, random);
                     opRun.set("queries", bytesOfBits(rope.from, patterns));
                     run(device, opRun.op());
                     opRun.expectResults();
                   });
}

TEST(MultiRoPE, PositionZeroChangesNothing) {
  for (RotaryEmbedding::Layout layout : rope::kLayouts) {
    MultiRoPECase rope = rope::rotated("position 0", 32, rope::rotaryOf(layout, 16));
    rope.positions = RopeNumbers::list;
    rope.firstPosition = 0;
    rope.spread = 1;
    const Context context(fmt::format("mode {}", static_cast<int>(layout)));
    forEveryRotation(rope, [](const std::shared_ptr<Device>& device, MultiRoPECase rope) {
      Seeded random;
      MultiRoPERun opRun(device, rope, random);
      for (std::string_view operand : {"queries", "keys"}) {
        opRun.set(operand, plainRopeElements(random, rope.from, opRun.before(operand).size() / byteSize(rope.from)));
      }
      run(device, opRun.op());
      opRun.expectAsBefore();
    });
  }
}

}  // namespace mnk::test
