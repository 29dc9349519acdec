// Where the vectors of a HeadsView lie, and which bytes a binding of them declares, against a walk over every vector.
#include <algorithm>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Harness/Seeded.hpp"
#include "Ops/Common/HeadsMemory.hpp"

namespace mnk::test {

namespace {

using Strides = HeadsView::Strides;

std::string text(const Strides& s) {
  return fmt::format("{} x {} x {} of {} at {}, strides {}, {}, {}", s.sequences, s.tokens, s.heads, s.headDim,
                     s.offset, s.sequenceStride, s.tokenStride, s.headStride);
}

std::string resolved(std::initializer_list<uint64_t> extents, KVLayout layout = KVLayout::tokenMajor) {
  return text(HeadsView(planTensor(DType::f16, extents), layout).resolved());
}

// Which bytes from the first vector on are part of a run, by plain loops.
std::vector<bool> touched(const Strides& s, const std::vector<ElementRun>& runs, uint64_t bytes,
                          uint64_t elementBytes) {
  std::vector<bool> all(bytes);
  for (uint64_t sequence = 0; sequence < s.sequences; ++sequence) {
    for (uint64_t token = 0; token < s.tokens; ++token) {
      for (uint64_t head = 0; head < s.heads; ++head) {
        const uint64_t vector = sequence * s.sequenceStride + token * s.tokenStride + head * s.headStride;
        for (const ElementRun& run : runs) {
          for (uint64_t byte = 0; byte < run.count * elementBytes; ++byte) {
            all.at((vector + run.begin) * elementBytes + byte) = true;
          }
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST(HeadsView, ShapesSayWhereVectorsLie) {
  EXPECT_EQ(resolved({4, 8}), "1 x 1 x 4 of 8 at 0, strides 32, 32, 8");
  EXPECT_EQ(resolved({3, 4, 8}), "1 x 3 x 4 of 8 at 0, strides 96, 32, 8");
  EXPECT_EQ(resolved({2, 3, 4, 8}), "2 x 3 x 4 of 8 at 0, strides 96, 32, 8");
  EXPECT_EQ(resolved({4, 3, 8}, KVLayout::headMajor), "1 x 3 x 4 of 8 at 0, strides 96, 8, 24");
  EXPECT_EQ(resolved({2, 4, 3, 8}, KVLayout::headMajor), "2 x 3 x 4 of 8 at 0, strides 96, 8, 24");
}

TEST(HeadsView, OtherRanksHoldNothing) {
  for (const HeadsView& view :
       {HeadsView(planTensor(DType::f16, {8})), HeadsView(planTensor(DType::f16, {1, 2, 3, 4, 8})),
        HeadsView(planTensor(DType::f16, {4, 8}), KVLayout::headMajor), HeadsView()}) {
    EXPECT(!view.isReadable());
    EXPECT_EQ(view.resolved().totalTokens(), 0u);
    EXPECT_EQ(view.resolved().heads, 0u);
  }
}

TEST(HeadsView, ColumnsAreHeadsSideBySide) {
  const Tensor fused = planTensor(DType::f16, {5, 48});
  EXPECT_EQ(text(REQUIRE(HeadsView::columns(fused, 32, 2, 8)).resolved()), "1 x 5 x 2 of 8 at 32, strides 240, 48, 8");
  EXPECT(liesInside(REQUIRE(HeadsView::columns(fused, 32, 2, 8))));
  EXPECT(!liesInside(REQUIRE(HeadsView::columns(fused, 33, 2, 8))));
  const Tensor batch = planTensor(DType::f16, {3, 5, 48});
  EXPECT_EQ(text(REQUIRE(HeadsView::columns(batch, 8, 4, 8)).resolved()), "3 x 5 x 4 of 8 at 8, strides 240, 48, 8");
  for (const Tensor& other : {planTensor(DType::f16, {48}), planTensor(DType::f16, {2, 3, 5, 48}), Tensor()}) {
    EXPECT_ERROR(
        HeadsView::columns(other, 0, 2, 8),
        {.op = "HeadsView", .what = "the tensor has no columns", .expected = "[tokens, width]", .fix = "Reshape"});
  }
}

TEST(HeadsMemory, LiesInsideUpToTheLastElement) {
  const Tensor tensor = planTensor(DType::f32, {100});
  const auto inside = [&](const Strides& strides) { return liesInside(HeadsView(tensor, strides)); };
  EXPECT(inside({.tokens = 3, .heads = 2, .headDim = 10, .offset = 10, .tokenStride = 30, .headStride = 20}));
  EXPECT(!inside({.tokens = 3, .heads = 2, .headDim = 10, .offset = 11, .tokenStride = 30, .headStride = 20}));
  EXPECT(!inside({.tokens = 3, .headDim = 10, .tokenStride = UINT64_MAX / 2 + 1}));
  EXPECT(!inside({.headDim = 10, .offset = UINT64_MAX}));
  EXPECT(!inside({.headDim = UINT64_MAX}));
  EXPECT(inside({.tokens = 0, .headDim = 10, .offset = UINT64_MAX}));
}

TEST(HeadsMemory, ReportsOverlappingVectors) {
  EXPECT(!overlapsItself({.tokens = 3, .heads = 2, .headDim = 8, .tokenStride = 16, .headStride = 8}));
  EXPECT(overlapsItself({.tokens = 3, .heads = 2, .headDim = 8, .tokenStride = 15, .headStride = 8}));
  EXPECT(overlapsItself({.tokens = 3, .heads = 2, .headDim = 8, .tokenStride = 16, .headStride = 7}));
  EXPECT(!overlapsItself({.tokens = 3, .heads = 2, .headDim = 8, .tokenStride = 8, .headStride = 24}));
  EXPECT(overlapsItself({.tokens = 3, .heads = 2, .headDim = 8, .tokenStride = 8, .headStride = 16}));
  EXPECT(overlapsItself({.sequences = 2, .heads = 2, .headDim = 8, .sequenceStride = 0, .headStride = 8}));
  EXPECT(!overlapsItself({.tokens = 1, .heads = 2, .headDim = 8, .tokenStride = 0, .headStride = 8}));
}

TEST(HeadsMemory, DeclaresExactlyTheBytesOfTheRuns) {
  Seeded random;
  uint64_t withGaps = 0, multiple = 0;
  for (int round = 0; round < 4000; ++round) {
    Strides s{.sequences = 1 + random.below(3), .tokens = 1 + random.below(4), .heads = 1 + random.below(4)};
    s.headDim = 2 * (1 + random.below(4));
    s.offset = random.below(3);
    // Axes in a random order, each past what the smaller ones reach.
    std::pair<uint64_t, uint64_t*> axes[] = {
        {s.heads, &s.headStride}, {s.tokens, &s.tokenStride}, {s.sequences, &s.sequenceStride}};
    for (int swap = 0; swap < 3; ++swap) std::swap(axes[random.below(3)], axes[random.below(3)]);
    uint64_t reach = s.headDim;
    for (const auto& [count, stride] : axes) {
      *stride = reach + (random.below(2) == 0 ? 0 : random.below(4));
      reach += (count - 1) * *stride;
    }
    std::vector<ElementRun> runs{{0, s.headDim}};
    if (random.below(3) == 0) runs = {{0, s.headDim / 2}};
    if (random.below(4) == 0 && s.headDim > 2) runs = {{0, 1}, {s.headDim / 2, 1}};
    const DType dtype = random.below(2) == 0 ? DType::f16 : DType::f32;
    const HeadsView view(planTensor(dtype, {s.offset + reach}), s);
    const Context context(text(s));
    EXPECT(liesInside(view));
    EXPECT(!overlapsItself(s));
    const Binding binding = bindingOf(7, view, runs, Access::readWrite);
    EXPECT_EQ(binding.offset, s.offset * byteSize(dtype));
    EXPECT_EQ(binding.length, reach * byteSize(dtype));
    const auto expected = touched(s, runs, binding.length, byteSize(dtype));
    expectCovers("read", binding.reads, expected);
    expectCovers("written", binding.writes, expected);
    const auto count = static_cast<uint64_t>(std::count(expected.begin(), expected.end(), true));
    EXPECT_EQ(bytesOf(view, runs), count);
    withGaps += count != expected.size();
    multiple += binding.reads.size() > runs.size();
  }
  EXPECT(withGaps > 500);
  EXPECT(multiple > 500);
}

TEST(HeadsMemory, BindsNothingOfAViewWithoutElements) {
  const HeadsView view(planTensor(DType::f16, {4}, 8), Strides{.tokens = 3, .offset = 1000, .tokenStride = 5});
  EXPECT(liesInside(view));
  const ElementRun none{0, 0};
  const Binding binding = bindingOf(0, view, {&none, 1}, Access::read);
  EXPECT_EQ(binding.offset, view.tensor.byteOffset());
  EXPECT_EQ(binding.length, 0u);
  EXPECT(binding.reads.empty());
}

// Two views of one memory, against a walk over every byte.
TEST(HeadsMemory, TellsWhetherVectorsMeet) {
  Seeded random;
  uint64_t meeting = 0, apart = 0;
  const Tensor memory = planTensor(DType::f16, {400});
  for (int round = 0; round < 4000; ++round) {
    const auto draw = [&] {
      return HeadsView(memory, Strides{.sequences = 1 + random.below(2),
                                       .tokens = 1 + random.below(4),
                                       .heads = 1 + random.below(3),
                                       .headDim = 2 * (1 + random.below(4)),
                                       .offset = random.below(40),
                                       .sequenceStride = random.below(80),
                                       .tokenStride = random.below(50),
                                       .headStride = random.below(30)});
    };
    const HeadsView a = draw(), b = draw();
    const auto bytesOfView = [&](const HeadsView& view) {
      Strides s = view.resolved();
      const std::vector<bool> behind = touched(s, {{0, s.headDim}}, memory.byteCount() - 2 * s.offset, 2);
      std::vector<bool> all(2 * s.offset);
      all.insert(all.end(), behind.begin(), behind.end());
      return all;
    };
    const std::vector<bool> ofA = bytesOfView(a), ofB = bytesOfView(b);
    bool isMeeting = false;
    for (size_t byte = 0; byte < ofA.size(); ++byte) isMeeting = isMeeting || (ofA[byte] && ofB[byte]);
    EXPECT_EQ(vectorsOverlap(a, b), isMeeting);
    (isMeeting ? meeting : apart) += 1;
  }
  EXPECT(meeting > 500);
  EXPECT(apart > 500);
}

// Vectors at distances that never fit together are covered as a whole once they would need too many regions.
TEST(HeadsMemory, CoversManyScatteredVectorsWithOneRegion) {
  const Strides s{.tokens = 100, .heads = 90, .headDim = 2, .tokenStride = 3, .headStride = 301};
  const HeadsView view(planTensor(DType::f16, {90 * 301}), s);
  const ElementRun all{0, 2};
  const Binding binding = bindingOf(0, view, {&all, 1}, Access::read);
  EXPECT_EQ(binding.reads.size(), 1u);
  EXPECT_EQ(binding.reads[0].byteCount(), binding.length);
  EXPECT_EQ(bytesOf(view, {&all, 1}), 100u * 90 * 4);
}

}  // namespace mnk::test
