// Calls that must give the same bytes, whatever the angles are, on every device.
#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MultiRoPERun.hpp"

namespace mnk::test {

namespace {

using Bytes = std::vector<std::byte>;
// Rotates, and gives back what became of the queries, with everything as it was before.
Bytes rotatedQueries(const std::shared_ptr<Device>& device, const MultiRoPERun& opRun, const MultiRoPE& op) {
  run(device, op);
  Bytes result = opRun.memory().now((op.rotatedQueries ? op.rotatedQueries : op.queries)->tensor);
  opRun.restore();
  return result;
}

void expectSame(const std::shared_ptr<Device>& device, const MultiRoPECase& rope, void (*change)(MultiRoPE& op)) {
  const Context context(rope.name);
  Seeded random;
  const MultiRoPERun opRun(device, rope, random);
  const Bytes expected = rotatedQueries(device, opRun, opRun.op());
  EXPECT(expected != opRun.before("queries"));
  MultiRoPE op = opRun.op();
  change(op);
  EXPECT(rotatedQueries(device, opRun, op) == expected);
}

template <RotaryEmbedding::Layout layout, RotaryEmbedding::OtherAxis otherAxis>
void useSections(MultiRoPE& op) {
  op.rotary = rope::rotaryOf(layout, 16);
  op.rotary.otherAxis = otherAxis;
}

}  // namespace

// Text has the same position on every axis, so the order of the sections cannot matter.
TEST(MultiRoPEIdentity, TextMakesSectionsEqualToHalfSplit) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint64_t axes : {1, 4}) {
      const MultiRoPECase rope{.name = fmt::format("{} axes", axes),
                               .headDim = 32,
                               .positions = RopeNumbers::list,
                               .axes = axes,
                               .firstPosition = 1234,
                               .spread = 1};
      expectSame(device, rope, useSections<RotaryEmbedding::Layout::mrope, RotaryEmbedding::OtherAxis::axis0>);
      expectSame(device, rope, useSections<RotaryEmbedding::Layout::imrope, RotaryEmbedding::OtherAxis::axis0>);
      expectSame(device, rope, useSections<RotaryEmbedding::Layout::imrope, RotaryEmbedding::OtherAxis::axis3>);
    }
  });
}

TEST(MultiRoPEIdentity, InPlaceEqualsOutOfPlace) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (uint64_t ropeDim : {32, 24, 14}) {
        MultiRoPECase rope{.name = "apart", .from = dtype, .into = dtype, .placing = RopePlacing::apart, .headDim = 32};
        rope.rotary.ropeDim = ropeDim;
        expectSame(device, rope, [](MultiRoPE& op) { op.rotatedQueries.reset(), op.rotatedKeys.reset(); });
      }
    }
  });
}

TEST(MultiRoPEIdentity, SameInputSameBytes) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    MultiRoPECase rope =
        rope::rotated("many heads", 128, {.layout = RotaryEmbedding::Layout::imrope, .sections = {24, 20, 20}});
    rope.tokens = 65;
    rope.heads = 5;
    for (int repeat = 0; repeat < 4; ++repeat) expectSame(device, rope, [](MultiRoPE&) {});
  });
}

TEST(MultiRoPEIdentity, PositionZeroChangesNothing) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (RotaryEmbedding::Layout layout : rope::kLayouts) {
      for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (uint64_t shift : {0, 1}) {
          Seeded random;
          const Context context(fmt::format("mode {}, {} shifted by {}", static_cast<int>(layout), name(dtype), shift));
          MultiRoPECase rope = rope::rotated("position 0", 32, rope::rotaryOf(layout, 16));
          rope.from = rope.into = dtype;
          rope.fromShift = shift;
          rope.positions = RopeNumbers::list;
          rope.firstPosition = 0;
          rope.spread = 1;
          MultiRoPERun opRun(device, rope, random);
          for (std::string_view operand : {"queries", "keys"}) {
            opRun.set(operand, plainRopeElements(random, dtype, opRun.before(operand).size() / byteSize(dtype)));
          }
          run(device, opRun.op());
          opRun.expectAsBefore();
        }
      }
    }
  });
}

// Queries and keys in one dispatch, or in two that need no barrier, whether they are in columns of one tensor or not.
TEST(MultiRoPEIdentity, QueriesAndKeysTogetherEqualEachAlone) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const auto& [memory, tokens] :
         {std::pair{RopeMemory::tokenMajor, 3}, {RopeMemory::tokenMajor, 66}, {RopeMemory::columns, 3}}) {
      Seeded random;
      const MultiRoPERun opRun(device,
                               {.name = fmt::format("{} tokens", tokens),
                                .fromMemory = memory,
                                .tokens = static_cast<uint64_t>(tokens),
                                .heads = 5,
                                .keyHeads = 2},
                               random);
      MultiRoPE queries = opRun.op(), keys = opRun.op();
      queries.keys.reset();
      keys.queries = *keys.keys;
      keys.keys.reset();
      CommandEncoder encoder(device);
      REQUIRE(encoder.encode(queries));
      REQUIRE(encoder.encode(keys));
      EXPECT_EQ(encoder.summary().barriers, 0u);
      REQUIRE(REQUIRE(encoder.commit()).wait());
      opRun.expectRotated();
      const Bytes alone[] = {opRun.now("queries"), opRun.now("keys")};
      opRun.restore();
      CommandEncoder together(device);
      REQUIRE(together.encode(opRun.op()));
      EXPECT_EQ(together.summary().total.dispatches, 1u);
      REQUIRE(REQUIRE(together.commit()).wait());
      EXPECT(opRun.now("queries") == alone[0]);
      EXPECT(opRun.now("keys") == alone[1]);
    }
  });
}

}  // namespace mnk::test
