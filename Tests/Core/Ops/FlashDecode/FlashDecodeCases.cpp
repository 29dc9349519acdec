// Cases over dense caches: where keys lie, which rows see them, and what memory is made of.
#include <algorithm>

#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

std::string text(KVLayout layout) {
  return layout == KVLayout::headMajor ? "head-major" : "token-major";
}

}  // namespace

std::vector<Case> headDimCases() {
  struct Dims {
    uint64_t keys, values;
  };
  const Dims dims[] = {{32, 32},   {64, 64},   {80, 80},   {96, 96},   {128, 128},
                       {192, 192}, {192, 128}, {256, 256}, {512, 512}, {576, 512}};
  std::vector<Case> cases;
  for (const Dims& d : dims) {
    for (DType cache : kEveryFloat) {
      for (KVLayout layout : kEveryLayout) {
        // Other dtypes in every case, so that each meets each.
        const uint64_t number = cases.size();
        cases.push_back({.name = fmt::format("{} and {} of {}, {}", d.keys, d.values, name(cache), text(layout)),
                         .cache = cache,
                         .headDim = d.keys,
                         .valueHeadDim = d.values,
                         .kvHeads = 1 + number % 2,
                         .layout = layout,
                         .queries = kEveryFloat[number / 2 % 3],
                         .group = number % 6 == 0 ? 1 : 1 + number % 3,
                         .rows = number % 6 == 0 ? 1 : 1 + number % 4,
                         .sequences = {{0, 9 + number % 7 * 5}},
                         .into = kEveryFloat[(number / 2 + number / 6) % 3]});
      }
    }
  }
  return cases;
}

std::vector<Case> paddedDimCases() {
  struct Dims {
    uint64_t keys, values;
  };
  std::vector<Dims> dims = {{96, 64},  {64, 128}, {72, 40},   {8, 256},  {256, 8},
                            {192, 64}, {200, 80}, {136, 128}, {56, 248}, {128, 96}};
  for (uint64_t dim : {8, 16, 24, 40, 48, 56, 72, 88, 104, 112, 120, 136, 160, 200, 248}) dims.push_back({dim, dim});
  std::vector<Case> cases;
  for (const Dims& d : dims) {
    for (DType cache : kEveryFloat) {
      const uint64_t number = cases.size();
      const bool isRing = number % 4 == 1;
      cases.push_back(
          {.name = fmt::format("{} and {} of {}, padded", d.keys, d.values, name(cache)),
           .cache = cache,
           .headDim = d.keys,
           .valueHeadDim = d.values,
           .kvHeads = 1 + number % 2,
           .capacity = isRing            ? 19u
                       : number % 5 == 0 ? 37u
                                         : 0u,  // 37: no slot follows the last key
           .layout = kEveryLayout[number / 2 % 2],
           .wrap = isRing ? KVWrap::ring : KVWrap::linear,
           .pinned = isRing ? 2u : 0u,
           .queries = kEveryFloat[number / 3 % 3],
           .group = 1 + number % 5,
           .rows = 1 + number % 4,
           .sequences = {{0, 37}},
           .into = kEveryFloat[number / 2 % 3],
           .givesPartials = number % 7 == 3,
           .givesLogSumExp = number % 3 == 0,
           .options = {.splits = static_cast<uint32_t>(number % 4), .kernel = AttentionOptions::Kernel::vector},
           .hasSinks = number % 14 == 8,
           .cacheShift = number % 3 == 2 ? byteSize(cache) * (1 + number % 7) : 0,
           .queryShift = number % 5 == 4 ? byteSize(kEveryFloat[number / 3 % 3]) : 0});
    }
  }
  return cases;
}

std::vector<Case> groupCases() {
  std::vector<Case> cases;
  for (uint64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 128}) {
    for (uint64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 20}) {
      // Each group and each number of rows with a few of the other.
      const bool isChosen = rows == 1 || group == 1 || (group * 7 + rows) % 5 == 0;
      if (!isChosen || group * rows > 128) continue;
      const bool isWide = (group + rows) % 2 == 0;
      cases.push_back({.name = fmt::format("{} rows of groups of {}", rows, group),
                       .cache = DType::f16,
                       .headDim = isWide ? 128u : 32u,
                       .valueHeadDim = isWide ? 128u : 32u,
                       .kvHeads = rows == 1 ? 2u : 1u,
                       .layout = kEveryLayout[rows % 2],
                       .group = group,
                       .rows = rows,
                       .rank = rows == 1 && group % 2 == 0 ? 2u : 0u,
                       .sequences = {{0, 21 + rows}}});
    }
  }
  return cases;
}

std::vector<Case> lengthCases() {
  std::vector<Case> cases;
  const auto add = [&](uint64_t length, uint32_t splits, uint64_t rows, uint64_t headDim) {
    cases.push_back({.name = fmt::format("{} positions in {} splits, {} rows of {}", length, splits, rows, headDim),
                     .cache = DType::f16,
                     .headDim = headDim,
                     .valueHeadDim = headDim,
                     .kvHeads = 1,
                     .layout = kEveryLayout[length % 2],
                     .group = 1 + length % 2,
                     .rows = rows,
                     .sequences = {{0, length}},
                     .givesLogSumExp = length % 3 == 0,
                     .options = {.splits = splits, .kernel = AttentionOptions::Kernel::vector}});
  };
  for (uint64_t length : {1, 2, 5, 31, 32, 33, 63, 64, 65, 113, 127, 128, 129, 257}) {
    for (uint32_t splits : {0, 1, 2, 3, 7, 33}) {
      if ((length + splits) % 2 == 0 || length < 6) add(length, splits, length == 1 ? 1 : 1 + length % 2, 32);
    }
    add(length, length % 2 ? 1 : 2, 1, 64);
  }
  for (uint64_t length : {1023, 1024, 1025}) {
    for (uint32_t splits : {0, 1, 7}) add(length, splits, 1, 32);
  }
  // As many splits as there may be, most of them empty.
  add(40, static_cast<uint32_t>(FlashDecode::kMaxSplits), 1, 32);
  return cases;
}

std::vector<Case> ringCases() {
  std::vector<Case> cases;
  for (uint32_t pinned : {0u, 2u}) {
    for (uint64_t length = 1; length <= 15; ++length) {
      for (uint64_t rows : {1, 3}) {
        if (rows > length) continue;
        const uint64_t number = cases.size();
        const uint64_t headDim = number % 3 == 1 ? 64 : 32;
        cases.push_back({.name = fmt::format("{} rows at {} of a ring of 6, {} pinned", rows, length, pinned),
                         .cache = DType::f16,
                         .headDim = headDim,
                         .valueHeadDim = headDim,
                         .capacity = 6,
                         .layout = kEveryLayout[number % 2],
                         .wrap = KVWrap::ring,
                         .pinned = pinned,
                         .rows = rows,
                         .sequences = {{0, length}},
                         .options = {.isCausal = number % 5 != 0,
                                     .window = number % 4 == 1 ? static_cast<uint32_t>(6 - pinned - rows + 1) : 0u,
                                     .splits = static_cast<uint32_t>(number % 3),
                                     .kernel = AttentionOptions::Kernel::vector},
                         .hasSlopes = number % 4 == 2});
      }
    }
  }
  // Rings that have lost positions to tokens which were taken back, down to all but the pinned ones.
  for (uint32_t pinned : {0u, 3u}) {
    for (uint64_t highest = 21; highest <= 31; highest += 2) {
      for (uint64_t rows : {1, 4}) {
        const uint64_t number = cases.size();
        const uint64_t length = 20, oldest = highest - (12 - pinned);
        cases.push_back(
            {.name = fmt::format("{} rows at 20 after {} of a ring of 12, {} pinned", rows, highest, pinned),
             .cache = DType::f16,
             .headDim = 32,
             .valueHeadDim = 32,
             .capacity = 12,
             .layout = kEveryLayout[number % 2],
             .wrap = KVWrap::ring,
             .pinned = pinned,
             .rows = rows,
             .sequences = {{0, length, highest}},
             .options = {.isCausal = number % 5 != 0,
                         .window = number % 3 == 1 && length + 1 > oldest + rows
                                       ? static_cast<uint32_t>(length - oldest - rows + 1)
                                       : 0u,
                         .splits = static_cast<uint32_t>(number % 3),
                         .kernel = AttentionOptions::Kernel::vector},
             .mask = number % 3 == 2 ? std::optional(MaskCase{}) : std::nullopt,
             .hasSlopes = number % 4 == 2});
      }
    }
  }
  for (uint64_t length : {1, 2, 7, 1000003}) {
    cases.push_back({.name = fmt::format("{} of a ring of one slot", length),
                     .headDim = 32,
                     .valueHeadDim = 32,
                     .capacity = 1,
                     .wrap = KVWrap::ring,
                     .sequences = {{0, length}}});
  }
  cases.push_back({.name = "a ring of 70 far along, 3 pinned",
                   .headDim = 32,
                   .valueHeadDim = 32,
                   .capacity = 70,
                   .wrap = KVWrap::ring,
                   .pinned = 3,
                   .rows = 2,
                   .sequences = {{0, 100003}},
                   .options = {.splits = 3, .kernel = AttentionOptions::Kernel::vector}});
  for (uint32_t window : {1u, 2u, 16u, 40u, 47u, 50u, 1000u, 0x7fffffffu}) {
    for (uint64_t rows : {1, 5}) {
      for (bool isRing : {false, true}) {
        if (isRing && window + rows > 37 - 4 + 1) continue;  // the ring would have lost positions of the window
        const uint64_t headDim = rows == 5 ? 64 : 32;
        cases.push_back({.name = fmt::format("{} rows with a window of {}{}", rows, window, isRing ? " in a ring" : ""),
                         .cache = DType::f16,
                         .headDim = headDim,
                         .valueHeadDim = headDim,
                         .kvHeads = 1,
                         .capacity = isRing ? 37u : 0u,
                         .wrap = isRing ? KVWrap::ring : KVWrap::linear,
                         .pinned = isRing ? 4u : 0u,
                         .rows = rows,
                         .sequences = {{0, 53}},
                         .options = {.isCausal = (window + rows) % 3 != 0,
                                     .window = window,
                                     .splits = window % 3,
                                     .kernel = AttentionOptions::Kernel::vector}});
      }
    }
  }
  // Windows that see pinned positions: some meet them, some leave a gap, with masks and slopes, in rings that have
  // wrapped or not.
  for (uint64_t length : {3, 7, 21, 39, 52, 60, 100}) {
    for (uint32_t window : {1u, 4u, 17u, 30u, 200u}) {
      const uint64_t number = cases.size();
      const uint64_t rows = length < 9 ? 1 + number % 3 : 1 + number * 5 % 12;
      if (length > 45 && window + rows > 45 - 5 + 1) continue;  // the ring would have lost positions of the window
      const uint64_t headDim = number % 2 ? 64 : 32;
      cases.push_back(
          {.name = fmt::format("{} rows at {} with a window of {} and pinned positions", rows, length, window),
           .cache = DType::f16,
           .headDim = headDim,
           .valueHeadDim = headDim,
           .kvHeads = 1 + number % 2,
           .capacity = 45,
           .layout = kEveryLayout[number % 2],
           .wrap = KVWrap::ring,
           .pinned = number % 3 == 0 ? 1u : 5u,
           .group = 1 + number % 3,
           .rows = rows,
           .sequences = {{0, length}},
           .givesLogSumExp = number % 4 == 0,
           .options = {.isCausal = number % 5 != 2,
                       .window = window,
                       .windowSeesPinned = true,
                       .splits = static_cast<uint32_t>(number % 4),
                       .kernel = AttentionOptions::Kernel::vector},
           .mask = number % 4 == 1 ? std::optional(MaskCase{.hasHoles = true}) : std::nullopt,
           .hasSlopes = number % 3 == 1});
    }
  }
  cases.push_back({.name = "a window and pinned positions over codes",
                   .keyCodec = KVCodec{.bits = 4},
                   .valueCodec = KVCodec{.bits = 4},
                   .capacity = 45,
                   .wrap = KVWrap::ring,
                   .pinned = 3,
                   .rows = 3,
                   .sequences = {{0, 80, 90}},
                   .options = {.window = 9, .windowSeesPinned = true, .kernel = AttentionOptions::Kernel::vector}});
  // The positions of its rows are below zero, by which no window may be counted.
  cases.push_back({.name = "rows of an empty sequence with the largest window",
                   .headDim = 32,
                   .valueHeadDim = 32,
                   .cacheSequences = 2,
                   .rows = 5,
                   .sequences = {{0, 0}, {1, 7}},
                   .givesLogSumExp = true,
                   .options = {.window = 0x7fffffffu, .kernel = AttentionOptions::Kernel::vector}});
  return cases;
}

std::vector<Case> sequenceCases() {
  const std::vector<std::vector<AttendedSequence>> lists = {
      {{0, 5}, {1, 40}},
      {{2, 33}, {0, 0}, {1, 7}},
      {{3, 0}, {0, 0}},
      {{1, 1}, {3, 64}, {0, 2}, {2, 31}},
      {{0, 20}, {0, 20}, {0, 11}},
      {{2, 12}},
      {{4, 9}, {3, 8}, {2, 70}, {1, 6}, {0, 5}, {4, 4}, {3, 3}},
  };
  std::vector<Case> cases;
  for (const auto& list : lists) {
    for (uint64_t rows : {1, 3}) {
      for (uint32_t splits : {0u, 1u, 4u}) {
        const uint64_t number = cases.size();
        const bool isRing = number % 4 == 3;
        // Rows have positions only where there are as many.
        const bool isCausal = std::none_of(list.begin(), list.end(), [&](const AttendedSequence& each) {
          return each.length != 0 && each.length < rows;
        });
        cases.push_back(
            {.name =
                 fmt::format("{} rows of {} sequences from {}, {} splits", rows, list.size(), list[0].sequence, splits),
             .cache = kEveryFloat[number % 3],
             .headDim = number % 3 == 1 ? 64u : 32u,
             .valueHeadDim = number % 3 == 1 ? 64u : 32u,
             .cacheSequences = 5,
             .capacity = isRing ? 16u : 0u,
             .layout = kEveryLayout[number % 2],
             .wrap = isRing ? KVWrap::ring : KVWrap::linear,
             .pinned = isRing ? 3u : 0u,
             .rows = rows,
             .rank = 4,
             .sequences = list,
             .givesLogSumExp = number % 2 == 0,
             .options = {.isCausal = isCausal, .splits = splits, .kernel = AttentionOptions::Kernel::vector}});
      }
    }
  }
  cases.push_back({.name = "one sequence of a cache of several, without an axis for it",
                   .cacheSequences = 3,
                   .rows = 2,
                   .sequences = {{1, 17}}});
  // More than one dispatch has room for.
  Case many{.name = "130 sequences",
            .cache = DType::f16,
            .headDim = 32,
            .valueHeadDim = 32,
            .kvHeads = 1,
            .cacheSequences = 130,
            .group = 1,
            .sequences = {}};
  for (uint64_t s = 0; s < 130; ++s) many.sequences.push_back({129 - s, s % 6});
  cases.push_back(many);
  return cases;
}

std::vector<Case> unalignedCases() {
  std::vector<Case> cases;
  for (DType cache : kEveryFloat) {
    for (uint64_t elements : {1, 2, 3}) {
      for (uint64_t operand = 0; operand < 3; ++operand) {
        const auto bytes = [&](uint64_t of, DType dtype) { return of == operand ? elements * byteSize(dtype) : 0; };
        const uint64_t number = cases.size();
        const DType other = kEveryFloat[number % 3];
        cases.push_back(
            {.name = fmt::format("{} of {} past an aligned address in operand {}", elements, name(cache), operand),
             .cache = cache,
             .headDim = number % 2 ? 64u : 80u,
             .valueHeadDim = number % 2 ? 64u : 80u,
             .layout = kEveryLayout[number % 2],
             .queries = other,
             .into = other,
             .givesPartials = number % 7 == 2,
             .options = {.splits = static_cast<uint32_t>(1 + number % 2), .kernel = AttentionOptions::Kernel::vector},
             .cacheShift = bytes(0, cache),
             .queryShift = bytes(1, other),
             .intoShift = number % 7 == 2 ? bytes(2, DType::f32) : bytes(2, other),
             .hasScratch = number % 2 == 1});
      }
    }
  }
  return cases;
}

std::vector<Case> allDecodeCases() {
  std::vector<Case> all;
  for (const auto& list :
       {headDimCases(), paddedDimCases(), groupCases(), lengthCases(), ringCases(), sequenceCases(), unalignedCases(),
        maskCases(), scoreCases(), queryCases(), quantizedCases(), mixedDecodeCases(), raggedCases()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace mnk::test
