// FlashDecode on grids like those that llama.cpp and MLX test their attention with. A part of each, drawn by lot, runs
// always; MNK_TEST_FULL=1 runs all.
#include <cstdlib>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

bool isFull() {
  const char* given = std::getenv("MNK_TEST_FULL");
  return given && std::string_view(given) == "1";
}

// A fixed sample of the cases that are cheap enough.
std::vector<Case> sample(const std::vector<Case>& grid, size_t count) {
  if (isFull()) return grid;
  constexpr uint64_t kMostProducts = 400'000;
  std::vector<Case> cheap, chosen;
  for (const Case& attend : grid) {
    const uint64_t keys = attend.longest() * attend.sequences.size();
    if (keys * attend.heads() * attend.rows * attend.headDim <= kMostProducts) cheap.push_back(attend);
  }
  Seeded random(1, 1);
  for (size_t c = 0; c < count && !cheap.empty(); ++c) {
    const auto at = cheap.begin() + static_cast<ptrdiff_t>(random.below(cheap.size()));
    chosen.push_back(*at);
    cheap.erase(at);
  }
  return chosen;
}

std::vector<Case> llamaGrid() {
  std::vector<Case> grid;
  for (const auto& [headDim, valueHeadDim] :
       {std::pair(64u, 64u), {80, 80}, {128, 128}, {192, 128}, {192, 192}, {256, 256}, {576, 512}}) {
    for (uint32_t with = 0; with < 16; ++with) {  // floats, mask, sinks, slopes
      for (uint64_t group : {1, 4, 12}) {
        for (uint64_t length : {113, 512, 1024}) {
          for (uint64_t rows : {1, 3}) {
            for (DType cache : {DType::f32, DType::f16, DType::bf16}) {
              Case attend{.name = fmt::format("{} and {} of {}, with {:#b}, groups of {}, {} positions, {} rows",
                                              headDim, valueHeadDim, name(cache), with, group, length, rows),
                          .cache = cache,
                          .headDim = headDim,
                          .valueHeadDim = valueHeadDim,
                          .kvHeads = 1 + length % 2,
                          .layout = (length + rows) % 2 ? KVLayout::headMajor : KVLayout::tokenMajor,
                          .group = group,
                          .rows = rows,
                          .sequences = {{0, length}},
                          .hasSlopes = (with & 1) != 0,
                          .hasSinks = (with & 2) != 0};
              if (with & 4) attend.mask = {.dtype = DType::f16};
              if (with & 8) setFloats(attend.options);
              grid.push_back(attend);
            }
          }
        }
      }
    }
  }
  return grid;
}

std::vector<Case> mlxGrid() {
  std::vector<Case> grid;
  for (uint64_t batch : {1, 2, 4}) {
    for (uint64_t rows : {1, 2, 4, 8}) {
      for (uint64_t length : {16, 63, 129, 400, 2000}) {
        for (uint64_t headDim : {64, 96, 128, 256}) {
          for (uint64_t group : {1, 4, 8}) {
            for (uint32_t masked = 0; masked < 3; ++masked) {  // causal, all, by a mask
              std::vector<AttendedSequence> sequences;
              for (uint64_t s = 0; s < batch; ++s) sequences.push_back({s, length - s * 3});
              Case attend{.name = fmt::format("{} sequences, {} rows, {} positions, head dim {}, groups of {}, mask {}",
                                              batch, rows, length, headDim, group, masked),
                          .cache = DType::f16,
                          .headDim = headDim,
                          .valueHeadDim = headDim,
                          .kvHeads = 1 + length % 2,
                          .cacheSequences = batch,
                          .queries = DType::f16,
                          .group = group,
                          .rows = rows,
                          .rank = 4,
                          .sequences = sequences,
                          .into = DType::f16};
              attend.options.isCausal = masked == 0;
              attend.options.kernel = AttentionOptions::Kernel::automatic;
              if (masked == 2) attend.mask = {.dtype = DType::f16, .rank = 4, .servesAllHeads = true};
              grid.push_back(attend);
            }
          }
        }
      }
    }
  }
  return grid;
}

}  // namespace

TEST(FlashDecodeGrid, OfLlama) {
  runOnEveryDevice(sample(llamaGrid(), 24));
}

TEST(FlashDecodeGrid, OfMLX) {
  runOnEveryDevice(sample(mlxGrid(), 20));
}

}  // namespace mnk::test
