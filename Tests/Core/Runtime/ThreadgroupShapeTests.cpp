#include "Runtime/DispatchRules.hpp"

#include <array>
#include <limits>

#include "Harness/Check.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::test {

namespace {

std::string sizeText(const Size3& size) {
  return fmt::format("{} x {} x {}", size[0], size[1], size[2]);
}

void expectLegal(const Size3& grid, uint32_t maxThreads) {
  Context context(fmt::format("grid {}, limit {}", sizeText(grid), maxThreads));
  const Size3 shape = threadgroupFor(grid, maxThreads);
  EXPECT(threadCount(shape) <= std::max(1u, maxThreads));
  for (size_t axis = 0; axis < 3; ++axis) {
    EXPECT(shape[axis] >= 1);
    EXPECT(shape[axis] <= std::max(1u, grid[axis]));
  }
  // Whole simdgroups on long axes.
  if (grid[0] >= 256 && maxThreads != 0 && maxThreads % 32 == 0) EXPECT_EQ(threadCount(shape) % 32, 0u);
}

}  // namespace

TEST(ThreadgroupShape, FillsTheFirstAxisFirst) {
  for (const auto& [grid, limit, expected] : {std::tuple(Size3{4096, 8, 2}, 1024u, Size3{256, 1, 1}),
                                              {{64, 8, 2}, 1024, {64, 4, 1}},
                                              {{16, 8, 2}, 1024, {16, 8, 2}},
                                              {{1, 1, 4096}, 1024, {1, 1, 256}},
                                              {{4096, 8, 2}, 64, {64, 1, 1}}}) {
    EXPECT_EQ(sizeText(threadgroupFor(grid, limit)), sizeText(expected));
  }
}

TEST(ThreadgroupShape, StaysWithinTheLimitAndTheGrid) {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  for (const uint32_t limit : {0u, 1u, 2u, 31u, 32u, 33u, 255u, 256u, 257u, 1024u, kMax}) {
    for (const uint32_t extent : {0u, 1u, 31u, 257u, kMax}) {
      expectLegal({extent, 1, 1}, limit);
      expectLegal({1, extent, 1}, limit);
      expectLegal({1, 1, extent}, limit);
      expectLegal({extent, extent, extent}, limit);
    }
  }
  Seeded random(11);
  for (int i = 0; i < 20'000; ++i) {
    const auto extent = [&] { return static_cast<uint32_t>(random.below(uint64_t{1} << random.below(33))); };
    expectLegal({extent(), extent(), extent()}, static_cast<uint32_t>(random.below(1200)));
  }
}

TEST(ThreadgroupShape, ShrinksByWholeSimdgroups) {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  for (const auto& [limit, threads] : {std::pair(0u, 32u),
                                       {31u, 32u},
                                       {32u, 32u},
                                       {95u, 64u},
                                       {96u, 96u},
                                       {256u, 256u},
                                       {1024u, 256u},
                                       {kMax, 256u}}) {
    EXPECT(shrinkToLimit(limit, {256, 1, 1}) == (Size3{threads, 1, 1}));
  }
}

TEST(ThreadgroupShape, SharedWorkUsesEnoughThreadgroups) {
  Grid grid{.unit = Grid::Unit::threadgroups, .extent = {2, 3, 5}, .threadgroup = {384, 1, 1}};
  EXPECT(shrinkToLimit(32, grid).threadgroup == (Size3{384, 1, 1}));
  for (const auto& [fewest, limit, threads, times] : {std::array{32u, 1024u, 384u, 1u},
                                                      {32u, 383u, 352u, 2u},
                                                      {32u, 192u, 192u, 2u},
                                                      {32u, 160u, 160u, 3u},
                                                      {32u, 0u, 32u, 12u},
                                                      {128u, 256u, 256u, 2u},
                                                      {128u, 224u, 224u, 3u},
                                                      {128u, 64u, 128u, 3u}}) {
    grid.minThreads = fewest;
    for (const bool isShared : {false, true}) {
      grid.isShared = isShared;
      const Grid shrunk = shrinkToLimit(limit, grid);
      EXPECT(shrunk.threadgroup == (Size3{threads, 1, 1}));
      EXPECT(shrunk.extent == (Size3{2, 3, isShared ? 5 * times : 5}));
    }
  }
}

TEST(ThreadgroupShape, CountsThreadsWithoutWrapping) {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(threadCount({2, 3, 4}), 24u);
  EXPECT_EQ(threadCount({kMax, kMax, 1}), uint64_t{kMax} * kMax);
  EXPECT_EQ(threadCount({kMax, kMax, kMax}), UINT64_MAX);
  EXPECT_EQ(threadCount({1u << 31, 1u << 31, 4}), UINT64_MAX);
  EXPECT_EQ(threadCount({kMax, kMax, 0}), 0u);
}

}  // namespace mnk::test
