#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"

#include <numeric>

#include "Harness/Check.hpp"

namespace mnk::test {

namespace {

using Case = KVCacheWriteCase;

constexpr KVLayout kLayouts[] = {KVLayout::headMajor, KVLayout::tokenMajor};

std::string_view text(KVLayout layout) {
  return layout == KVLayout::headMajor ? "head-major" : "token-major";
}
std::string_view text(KVWrap wrap) {
  return wrap == KVWrap::ring ? "ring" : "linear";
}

// Up to one more than three times the capacity.
std::vector<uint64_t> tokenCounts(uint64_t capacity) {
  std::vector<uint64_t> counts(3 * capacity + 2);
  std::iota(counts.begin(), counts.end(), 0);
  return counts;
}

// An odd head dim leaves no alignment to rely on; 4 allows vectors.
uint64_t headDimFor(size_t index) {
  return index % 2 == 0 ? 4 : 3;
}

}  // namespace

std::vector<std::pair<DType, DType>> dtypePairs() {
  std::vector<std::pair<DType, DType>> pairs;
  for (DType source : {DType::f32, DType::f16, DType::bf16}) {
    for (DType cache : {DType::f32, DType::f16, DType::bf16}) pairs.push_back({source, cache});
  }
  for (DType dtype : {DType::u8, DType::u16, DType::u32, DType::i32}) pairs.push_back({dtype, dtype});
  return pairs;
}

std::vector<Case> dtypeCases() {
  std::vector<Case> cases;
  for (const auto& [source, cache] : dtypePairs()) {
    for (KVLayout sourceLayout : kLayouts) {
      for (KVLayout cacheLayout : kLayouts) {
        for (const auto& [headDim, valueHeadDim] : {std::pair{8, 0}, {8, 8}, {8, 12}, {3, 0}, {3, 5}, {0, 8}}) {
          cases.push_back({.name = fmt::format("{} {} to {} {}, head dims {} and {}", text(sourceLayout), name(source),
                                               text(cacheLayout), name(cache), headDim, valueHeadDim),
                           .source = source,
                           .cache = cache,
                           .sourceLayout = sourceLayout,
                           .cacheLayout = cacheLayout,
                           .headDim = static_cast<uint64_t>(headDim),
                           .valueHeadDim = static_cast<uint64_t>(valueHeadDim),
                           .capacity = 5,
                           .sourceTokens = 3,
                           .position = 9});
        }
      }
    }
  }
  return cases;
}

std::vector<Case> extentCases() {
  std::vector<Case> cases;
  for (uint64_t headDim : {1, 3, 64, 80, 96, 128, 256, 512}) {
    for (uint64_t heads : {1, 3, 8}) {
      for (const auto& [source, cache] : {std::pair{DType::f32, DType::f16}, {DType::bf16, DType::bf16}}) {
        for (KVLayout layout : kLayouts) {
          cases.push_back({.name = fmt::format("{} heads of {}, {} to {}, {}", heads, headDim, name(source),
                                               name(cache), text(layout)),
                           .source = source,
                           .cache = cache,
                           .cacheLayout = layout,
                           .heads = heads,
                           .headDim = headDim,
                           .valueHeadDim = heads == 3 ? headDim / 2 : headDim,
                           .sourceTokens = 3,
                           .position = 2});
        }
      }
    }
  }
  for (KVLayout layout : kLayouts) {
    for (uint64_t sequence = 0; sequence < 3; ++sequence) {
      cases.push_back({.name = fmt::format("sequence {} of 3, {}", sequence, text(layout)),
                       .cacheLayout = layout,
                       .sequences = 3,
                       .sourceTokens = 3,
                       .sequence = sequence,
                       .position = 3});
    }
    for (uint64_t offset = 0; offset <= 5; ++offset) {
      for (uint64_t tokens = 0; tokens <= 5 - offset; ++tokens) {
        cases.push_back({.name = fmt::format("{} of 5 {} source tokens from {}", tokens, text(layout), offset),
                         .sourceLayout = layout,
                         .headDim = headDimFor(tokens),
                         .sourceTokens = 5,
                         .sourceOffset = offset,
                         .tokens = tokens,
                         .position = 1});
      }
      cases.push_back({.name = fmt::format("the rest of 5 {} source tokens from {}", text(layout), offset),
                       .sourceLayout = layout,
                       .sourceTokens = 5,
                       .sourceOffset = offset});
    }
    cases.push_back({.name = fmt::format("a source of rank 2, {}", text(layout)),
                     .cacheLayout = layout,
                     .wrap = KVWrap::linear,
                     .isSourceRank2 = true,
                     .position = 3});
  }
  return cases;
}

std::vector<Case> wrapCases() {
  std::vector<Case> cases;
  for (uint64_t capacity : {1, 4, 7}) {
    for (uint64_t tokens : tokenCounts(capacity)) {
      for (uint64_t position = 0; position <= 2 * capacity; ++position) {
        for (KVWrap wrap : {KVWrap::ring, KVWrap::linear}) {
          if (wrap == KVWrap::linear && position + tokens > capacity) continue;
          for (KVLayout layout : kLayouts) {
            cases.push_back({.name = fmt::format("{} tokens at {} of a {} {} of {}", tokens, position, text(layout),
                                                 text(wrap), capacity),
                             .cacheLayout = layout,
                             .wrap = wrap,
                             .headDim = headDimFor(cases.size() / 2),
                             .valueHeadDim = cases.size() % 3 == 0 ? 0u : 2u,
                             .capacity = capacity,
                             .sourceTokens = tokens,
                             .position = position});
          }
        }
      }
    }
  }
  return cases;
}

std::vector<Case> pinnedCases() {
  std::vector<Case> cases;
  for (uint64_t capacity : {2, 4, 7}) {
    for (uint32_t pinned = 1; pinned < capacity; ++pinned) {
      for (uint64_t tokens : tokenCounts(capacity)) {
        for (uint64_t position = 0; position <= 2 * capacity; ++position) {
          const KVLayout layout = kLayouts[(position + tokens) % 2];
          cases.push_back({.name = fmt::format("{} tokens at {} of a {} ring of {}, {} pinned", tokens, position,
                                               text(layout), capacity, pinned),
                           .sourceLayout = kLayouts[tokens % 2],
                           .cacheLayout = layout,
                           .pinned = pinned,
                           .headDim = headDimFor(cases.size()),
                           .valueHeadDim = cases.size() % 3 == 0 ? 0u : 2u,
                           .capacity = capacity,
                           .sourceTokens = tokens,
                           .position = position});
        }
      }
    }
  }
  return cases;
}

std::vector<Case> farCases() {
  std::vector<Case> cases;
  for (uint64_t power : {31, 32, 63}) {
    for (int64_t step = -4; step <= 2; ++step) {
      for (uint32_t pinned : {0u, 2u}) {
        for (uint64_t tokens : {1, 5, 20}) {
          cases.push_back({.name = fmt::format("{} tokens at 2^{} + {}, {} pinned", tokens, power, step, pinned),
                           .pinned = pinned,
                           .heads = 1,
                           .capacity = 7,
                           .sourceTokens = tokens,
                           .position = (uint64_t{1} << power) + static_cast<uint64_t>(step)});
        }
      }
    }
  }
  cases.push_back(
      {.name = "the last position that can be counted", .capacity = 7, .sourceTokens = 5, .position = UINT64_MAX - 5});
  return cases;
}

std::vector<Case> linearizeCases() {
  std::vector<Case> cases;
  for (uint64_t length : {1, 4, 7}) {
    for (uint64_t offset = 0; offset <= 2 * length; ++offset) {
      for (uint64_t tokens = 0; tokens <= length; ++tokens) {
        for (KVWrap wrap : {KVWrap::linear, KVWrap::ring}) {
          const KVLayout layout = kLayouts[(offset + tokens) % 2];
          cases.push_back({.name = fmt::format("{} tokens from {} of a {} source ring of {} to a {} cache", tokens,
                                               offset, text(layout), length, text(wrap)),
                           .source = DType::f16,
                           .cache = tokens % 2 == 0 ? DType::f16 : DType::bf16,
                           .sourceLayout = layout,
                           .wrap = wrap,
                           .capacity = wrap == KVWrap::linear ? length + 1 : 3,
                           .sourceTokens = length,
                           .isSourceRing = true,
                           .sourceOffset = offset,
                           .tokens = tokens,
                           .position = wrap == KVWrap::linear ? 1u : 5u});
        }
      }
    }
  }
  cases.push_back({.name = "all of a source ring, from an offset past 2^32",
                   .capacity = 7,
                   .sourceTokens = 7,
                   .isSourceRing = true,
                   .sourceOffset = (uint64_t{1} << 40) + 3});
  cases.push_back({.name = "a source ring to a ring with pinned slots",
                   .pinned = 2,
                   .capacity = 5,
                   .sourceTokens = 9,
                   .isSourceRing = true,
                   .sourceOffset = 7,
                   .position = 1});
  return cases;
}

std::vector<Case> alignmentCases() {
  std::vector<Case> cases;
  for (const auto& [source, cache] : dtypePairs()) {
    for (uint64_t sourceShift = 0; sourceShift <= 16; sourceShift += byteSize(source)) {
      for (uint64_t cacheShift = 0; cacheShift <= 16; cacheShift += byteSize(cache)) {
        cases.push_back(
            {.name = fmt::format("{} at byte {} to {} at byte {}", name(source), sourceShift, name(cache), cacheShift),
             .source = source,
             .cache = cache,
             .heads = 1,
             .headDim = 16,
             .valueHeadDim = 0,
             .capacity = 2,
             .sourceTokens = 2,
             .sourceShift = sourceShift,
             .cacheShift = cacheShift,
             .position = 1});
      }
    }
  }
  return cases;
}

std::vector<Case> rowCases() {
  const uint32_t far = UINT32_MAX;
  struct Named {
    std::string_view name;
    std::vector<Case::Row> rows;
    bool isInRange = true;  // lists may only name what is there
    bool needsRing = false;
  };
  const Named named[] = {
      {"no rows", {}},
      {"one row", {{1, 2}}},
      {"a row for each sequence", {{2, 0}, {0, 3}, {1, 1}}},
      {"several rows in one sequence", {{1, 3}, {1, 0}, {1, 2}}},
      {"the same place twice", {{0, 1}, {2, 3}, {0, 1}, {1, 1}}},
      {"one place from every row", {{2, 2}, {2, 2}, {2, 2}, {2, 2}, {2, 2}}},
      {"all places, and some again",
       {{0, 0},
        {0, 1},
        {0, 2},
        {0, 3},
        {1, 0},
        {1, 1},
        {1, 2},
        {1, 3},
        {2, 0},
        {2, 1},
        {2, 2},
        {2, 3},
        {1, 2},
        {0, 3},
        {2, 0},
        {0, 0}}},
      {"positions past a ring's end", {{0, 4}, {1, 7}, {2, 1000003}, {0, far}}, true, true},
      {"one slot by different positions", {{0, 5}, {0, 1}, {1, 9}, {0, 9}, {1, 1}}, true, true},
      {"a sequence that is not there", {{3, 1}, {0, 2}, {far, 0}}, false},
      {"places that are not there, repeated", {{3, 1}, {0, 2}, {3, 1}, {1, 1}, {7, 2}}, false},
      {"a position past a linear end", {{0, 4}, {1, 3}, {0, far}, {1, 4}}, false},
  };
  std::vector<Case> cases;
  for (const Named& list : named) {
    for (KVWrap wrap : {KVWrap::linear, KVWrap::ring}) {
      if (list.needsRing && wrap == KVWrap::linear) continue;
      for (uint32_t pinned : {0u, 2u}) {
        if (pinned && wrap == KVWrap::linear) continue;
        for (int form = list.isInRange ? 0 : 3; form < 4; ++form) {
          for (KVLayout layout : kLayouts) {
            const bool isVector = form % 2 == 0;
            const bool isMove = layout == KVLayout::tokenMajor;
            cases.push_back(
                {.name = fmt::format("{}: {} cache, {}, {} pinned, sequences from a {}, positions from a {}", list.name,
                                     text(layout), text(wrap), pinned, form & 1 ? "tensor" : "list",
                                     form & 2 ? "tensor" : "list"),
                 .source = isMove ? DType::bf16 : DType::f32,
                 .cache = isMove ? DType::bf16 : DType::f16,
                 .sourceLayout = kLayouts[form % 2],
                 .cacheLayout = layout,
                 .wrap = wrap,
                 .pinned = pinned,
                 .headDim = isVector ? 4u : 3u,
                 .valueHeadDim = isVector ? 8u : 0u,
                 .sequences = 3,
                 .sourceTokens = list.rows.size(),
                 .rows = list.rows,
                 .areSequencesTensor = (form & 1) != 0,
                 .arePositionsTensor = (form & 2) != 0});
          }
        }
      }
    }
  }
  cases.push_back({.name = "rows of some source tokens",
                   .sequences = 3,
                   .sourceTokens = 6,
                   .sourceOffset = 2,
                   .tokens = 3,
                   .rows = {{{0, 1}, {2, 2}, {0, 1}}}});
  cases.push_back({.name = "rows of a source ring",
                   .sequences = 3,
                   .sourceTokens = 6,
                   .isSourceRing = true,
                   .sourceOffset = 4,
                   .rows = {{{0, 0}, {1, 1}, {2, 2}, {0, 3}, {1, 4}, {2, 5}}}});
  cases.push_back(
      {.name = "rows of a cache without an axis for sequences", .sourceTokens = 3, .rows = {{{0, 0}, {0, 3}, {0, 6}}}});
  for (const DType source : {DType::f32, DType::f16}) {
    cases.push_back({.name = fmt::format("listed rows of {} keys alone, an odd head dim", name(source)),
                     .source = source,
                     .cache = DType::f16,
                     .headDim = 3,
                     .valueHeadDim = 0,
                     .sequences = 3,
                     .sourceTokens = 3,
                     .rows = {{{2, 1}, {0, 3}, {2, 1}}}});
  }
  Case longest{.name = "as many rows as a list holds",
               .heads = 1,
               .valueHeadDim = 0,
               .capacity = 100,
               .sequences = 2,
               .sourceTokens = 1024,
               .rows = std::vector<Case::Row>{}};
  for (uint32_t row = 0; row < 1024; ++row) longest.rows->push_back({row % 3 % 2, row * 7});
  cases.push_back(longest);
  return cases;
}

std::vector<Case> allCases() {
  std::vector<Case> all;
  for (auto make : {dtypeCases, extentCases, wrapCases, pinnedCases, farCases, linearizeCases, alignmentCases, rowCases,
                    sourceCases}) {
    const auto cases = make();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace mnk::test
