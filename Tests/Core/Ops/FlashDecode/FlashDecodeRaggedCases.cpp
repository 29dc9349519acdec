#include <algorithm>

#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

Case raggedCase(std::string name, std::vector<AttendedSequence> sequences) {
  Case attend{.name = std::move(name), .cacheSequences = 5, .sequences = std::move(sequences)};
  for (const AttendedSequence& each : attend.sequences) attend.rows = std::max(attend.rows, each.rows);
  return attend;
}

}  // namespace

std::vector<Case> raggedCases() {
  std::vector<Case> cases;
  const std::vector<std::vector<AttendedSequence>> lists = {
      {{0, 5, 0, 5}, {1, 40, 0, 1}, {2, 17, 0, 3}},
      {{3, 33, 0, 1}, {0, 0, 0, 4}, {1, 7, 0, 7}, {4, 2, 0, 2}, {2, 90, 0, 6}},
      {{0, 30, 0, 20}, {4, 9, 0, 9}, {2, 50, 0, 1}, {1, 8, 0, 8}},
      {{0, 20, 0, 4}, {0, 16, 0, 2}, {0, 14, 0, 9}},
      {{1, 12, 0, 2}, {3, 70, 0, 2}},
      {{2, 25, 0, 17}},
      {{4, 31, 0, 1}, {1, 1, 0, 1}},
  };
  for (const auto& list : lists) {
    for (uint32_t splits : {0u, 1u, 3u}) {
      const uint64_t number = cases.size();
      Case attend =
          raggedCase(fmt::format("{} sequences from {} rows on, {} splits", list.size(), list[0].rows, splits), list);
      attend.cache = kEveryFloat[number % 3];
      attend.queries = kEveryFloat[number / 2 % 3];
      attend.headDim = attend.valueHeadDim = std::vector<uint64_t>{64, 128, 32, 80}[number % 4];
      attend.layout = kEveryLayout[number % 2];
      attend.group = 1 + number % 5;
      attend.queryPlaces = static_cast<QueryPlaces>(number % 4);
      attend.givesLogSumExp = number % 2 == 0;
      attend.givesPartials = number % 5 == 3;
      attend.hasSinks = !attend.givesPartials && number % 3 == 0;
      attend.hasSlopes = number % 4 == 1;
      attend.hasScratch = splits == 3;
      attend.queryShift = number % 7 == 2 ? byteSize(attend.queries) : 0;
      attend.options.splits = splits;
      attend.options.isCausal = number % 4 != 3;
      cases.push_back(attend);
    }
  }
  // Each sequence at another phase of its ring, with pinned positions, tokens that were taken back, and windows.
  for (const bool seesPinned : {false, true}) {
    for (uint32_t window : {0u, 1u, 4u, 7u}) {
      Case attend = raggedCase(fmt::format("rings, a window of {}{}", window, seesPinned ? " and pinned ones" : ""),
                               {{0, 100, 0, 3}, {1, 23, 0, 9}, {2, 21, 22, 1}, {3, 9, 0, 4}, {4, 57, 0, 10}});
      attend.cache = DType::f16;
      attend.capacity = 20;
      attend.wrap = KVWrap::ring;
      attend.pinned = 3;
      attend.options.window = window;
      attend.options.windowSeesPinned = seesPinned;
      attend.options.splits = window % 3;
      attend.givesLogSumExp = true;
      cases.push_back(attend);
    }
  }
  for (const bool isMixed : {false, true}) {
    Case attend = raggedCase(isMixed ? "codes of keys alone" : "codes", {{0, 12, 0, 10}, {3, 80, 0, 2}, {1, 5, 0, 5}});
    attend.cache = DType::f16;
    attend.queries = DType::f16;
    attend.keyCodec = KVCodec{.bits = 4};
    if (!isMixed) attend.valueCodec = KVCodec{.bits = 3};
    attend.hasKeyMeans = attend.hasChannelScales = true;
    attend.hasValueMeans = !isMixed;
    attend.group = 3;
    attend.options.splits = 2;
    cases.push_back(attend);
  }
  // Caches of a part of the keys: rows that follow it, far or near, rows in it, and rows before some of it.
  for (uint32_t window : {0u, 6u, 25u, 60u}) {
    const uint64_t number = cases.size();
    const bool isRing = window == 6;
    Case attend = raggedCase(fmt::format("rows elsewhere, a window of {}", window),
                             {{.sequence = 0, .length = 20, .rows = 3, .position = 20},
                              {.sequence = 0, .length = 20, .rows = 9, .position = 22},
                              {.sequence = 1, .length = 33, .rows = 5, .position = isRing ? 30 : 4},
                              {.sequence = 2, .length = 7, .rows = 12, .position = -4},
                              {.sequence = 3, .length = 30, .highest = 31, .rows = 2, .position = 1000}});
    attend.cache = DType::f16;
    attend.queries = kEveryFloat[number % 3];
    if (isRing) {
      attend.wrap = KVWrap::ring;
      attend.capacity = 24;
      attend.pinned = 2;
      attend.options.windowSeesPinned = true;
    }
    attend.hasSlopes = true;
    attend.givesPartials = number % 2 == 0;
    attend.givesLogSumExp = true;
    attend.options.isCausal = number % 4 != 1;
    attend.options.splits = static_cast<uint32_t>(number % 3);
    attend.options.window = window;
    cases.push_back(attend);
    // The same number of rows for each sequence.
    attend.name += ", as many of each";
    for (AttendedSequence& each : attend.sequences) each.rows = 0;
    attend.rows = 9;
    attend.options.isCausal = !attend.options.isCausal;
    cases.push_back(attend);
  }
  // A value that only some rows of one sequence see.
  Case special = raggedCase("a NaN value", {{1, 20, 0, 2}, {2, 16, 0, 6}, {0, 9, 0, 1}});
  special.cache = DType::f16;
  special.specials = {{.isKey = false, .sequence = 1, .key = 13, .element = 5, .number = __builtin_nanf("")}};
  cases.push_back(special);
  // More than one dispatch has room for; the longest are in the second.
  Case many = raggedCase("135 sequences", {});
  many.cacheSequences = 135;
  many.cache = DType::f16;
  many.headDim = many.valueHeadDim = 32;
  many.kvHeads = 1;
  many.group = 1;
  many.rows = 11;
  for (uint64_t s = 0; s < 135; ++s) {
    const uint64_t rows = s < 130 ? 1 : s - 124;
    many.sequences.push_back({134 - s, rows + s % 6, 0, rows});
  }
  cases.push_back(many);
  return cases;
}

}  // namespace mnk::test
