// Equalities that hold for MultiRoPE whatever the angles are, on every device.
#include <cmath>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MultiRoPERun.hpp"

namespace mnk::test {

namespace {

using Bytes = std::vector<std::byte>;
using Case = MultiRoPECase;

// Rotates and gives back a result, with everything as it was before.
Bytes resultOf(const std::shared_ptr<Device>& device, const MultiRoPERun& opRun, const MultiRoPE& op,
               std::string_view name) {
  run(device, op);
  Bytes result = opRun.now(name);
  opRun.restore();
  return result;
}

}  // namespace

// Text has the same position on every axis, so the order of the sections cannot matter.
TEST(MultiRoPEIdentity, TextMakesSectionsEqualToHalfSplit) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (uint64_t axes : {1, 4}) {
      const Case rope{.name = fmt::format("{} axes", axes),
                      .headDim = 32,
                      .positions = RopeNumbers::list,
                      .axes = axes,
                      .firstPosition = 1234,
                      .spread = 1};
      const MultiRoPERun opRun(device, rope, random);
      MultiRoPE op = opRun.op();
      const Bytes expected = resultOf(device, opRun, op, "queries");
      EXPECT(expected != opRun.before("queries"));
      for (RotaryLayout layout : {RotaryLayout::mrope, RotaryLayout::imrope}) {
        for (RotaryOtherAxis otherAxis : rope::kOtherAxes) {
          const Context context(fmt::format("{} on {} axes", rope::text(layout), axes));
          op.rotary = rope::rotaryOf(layout, 16);
          op.rotary.otherAxis = otherAxis;
          EXPECT(resultOf(device, opRun, op, "queries") == expected);
        }
      }
    }
  });
}

TEST(MultiRoPEIdentity, PositionZeroChangesNothing) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (RotaryLayout layout : rope::kLayouts) {
      for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (uint64_t shift : {0, 1}) {
          Seeded random;
          const Context context(fmt::format("{} {}, shifted by {}", rope::text(layout), name(dtype), shift));
          Case rope = rope::rotated("position 0", 32, rope::rotaryOf(layout, 16));
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
          opRun.expectUntouched();
        }
      }
    }
  });
}

// A rotation and its inverse err by one slack each, the second one after the first's result was stretched back.
TEST(MultiRoPEIdentity, TheInverseUndoesARotation) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (RotaryLayout layout : rope::kLayouts) {
      for (bool isYaRN : {false, true}) {
        if (isYaRN && layout == RotaryLayout::vision) continue;
        Seeded random;
        const Context context(fmt::format("{}{}", rope::text(layout), isYaRN ? " with YaRN" : ""));
        Case rope = rope::rotated("there and back", 64, rope::rotaryOf(layout, 32));
        rope.firstPosition = 98765;
        rope.rotary.scale = isYaRN ? 0.25 : 1;
        if (isYaRN) rope.rotary.yarn = YaRN{.originalContext = 4096, .attentionFactor = 3};
        MultiRoPERun opRun(device, rope, random);
        const uint64_t count = opRun.before("queries").size() / 4;
        opRun.set("queries", plainRopeElements(random, DType::f32, count));
        const auto expected = opRun.expected().queries;
        MultiRoPE op = opRun.op();
        run(device, op);
        EXPECT(opRun.now("queries") != opRun.before("queries"));
        op.rotary.isInverse = true;
        run(device, op);
        const Bytes before = opRun.before("queries"), after = opRun.now("queries");
        const double magnitude = isYaRN ? 3 * (1 + 0.1 * std::log(4)) : 1;
        for (const TurnedElement& element : expected) {
          const double was = f32At(before, element.from);
          const double is = f32At(after, element.into);
          const double allowed = 3 * slackOf(element) / magnitude;
          if (std::abs(is - was) <= allowed) continue;
          fail(__FILE__, __LINE__,
               fmt::format("(token {}, head {}, element {}): got {}, expected {} within {:.3g}", element.token,
                           element.head, element.element, is, was, allowed));
          break;
        }
      }
    }
  });
}

TEST(MultiRoPEIdentity, SameInputSameBytes) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    Case rope = rope::rotated("many heads", 128, {.layout = RotaryLayout::imrope, .sections = {24, 20, 20}});
    rope.tokens = 65;
    rope.heads = 5;
    const MultiRoPERun opRun(device, rope, random);
    const Bytes first = resultOf(device, opRun, opRun.op(), "queries");
    for (int repeat = 0; repeat < 4; ++repeat) EXPECT(resultOf(device, opRun, opRun.op(), "queries") == first);
  });
}

TEST(MultiRoPEIdentity, QueriesAndKeysTogetherEqualEachAlone) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint64_t tokens : {3, 66}) {
      Seeded random;
      const Case rope{.name = fmt::format("{} tokens", tokens), .tokens = tokens, .heads = 5, .keyHeads = 2};
      const MultiRoPERun opRun(device, rope, random);
      MultiRoPE queries = opRun.op();
      MultiRoPE keys = opRun.op();
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

TEST(MultiRoPEIdentity, InPlaceEqualsOutOfPlace) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (uint64_t ropeDim : {32, 24, 14}) {
        Seeded random;
        Case rope{.name = "apart", .from = dtype, .into = dtype, .placing = RopePlacing::apart, .headDim = 32};
        rope.rotary.ropeDim = ropeDim;
        const MultiRoPERun opRun(device, rope, random);
        const Bytes apart = resultOf(device, opRun, opRun.op(), "rotated queries");
        MultiRoPE inPlace = opRun.op();
        inPlace.rotatedQueries.reset();
        inPlace.rotatedKeys.reset();
        EXPECT(resultOf(device, opRun, inPlace, "queries") == apart);
      }
    }
  });
}

// Each of two devices may be one slack away from what is exact, on its own side.
TEST(MultiRoPEIdentity, DevicesAgreeWithEachOther) {
  Case rope = rope::rotated("on each device", 96, rope::rotaryOf(RotaryLayout::imrope, 48));
  rope.tokens = 9;
  rope.firstPosition = 100000;
  Bytes first;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    MultiRoPERun opRun(device, rope, random);
    opRun.set("queries", plainRopeElements(random, DType::f32, opRun.before("queries").size() / 4));
    const Bytes result = resultOf(device, opRun, opRun.op(), "queries");
    if (first.empty()) first = result;
    for (const TurnedElement& element : opRun.expected().queries) {
      const double one = f32At(first, element.into), other = f32At(result, element.into);
      if (std::abs(one - other) <= 2 * slackOf(element)) continue;
      return fail(__FILE__, __LINE__,
                  fmt::format("(token {}, head {}, element {}): got {}, expected {} as on the first device",
                              element.token, element.head, element.element, other, one));
    }
  });
}

// Columns of [tokens, width] are found where a row-major matrix has them. Gaps keep the alignment, because a compiler
// that may reorder need not do the same for one pair and for four.
TEST(MultiRoPEIdentity, AFusedProjectionEqualsSeparateTensors) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint64_t gap : {0, 4, 8}) {
      Seeded random;
      const Case fused{.name = "fused", .fromMemory = RopeMemory::columns, .fromGap = gap, .heads = 3, .keyHeads = 2};
      const Case apart{.name = "separate", .heads = 3, .keyHeads = 2};
      const MultiRoPERun together(device, fused, random);
      MultiRoPERun separate(device, apart, random);
      const uint64_t width = 3 * gap + 5 * 16;
      const auto columns = [&](const Bytes& matrix, uint64_t first, uint64_t count) {
        Bytes picked;
        for (uint64_t token = 0; token < 3; ++token) {
          const std::byte* start = matrix.data() + (token * width + first) * 4;
          picked.insert(picked.end(), start, start + count * 4);
        }
        return picked;
      };
      separate.set("queries", columns(together.before("queries"), gap, 3 * 16));
      separate.set("keys", columns(together.before("queries"), 2 * gap + 3 * 16, 2 * 16));
      run(device, together.op());
      run(device, separate.op());
      EXPECT(columns(together.now("queries"), gap, 3 * 16) == separate.now("queries"));
      EXPECT(columns(together.now("queries"), 2 * gap + 3 * 16, 2 * 16) == separate.now("keys"));
    }
  });
}

}  // namespace mnk::test
