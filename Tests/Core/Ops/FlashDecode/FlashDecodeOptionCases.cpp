// The numbers among options, and cases of what makes a score, what else results may be, and of quantized caches.
#include <cmath>

#include "Ops/Common/TurboSigns.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

Case smallCase(std::string name, uint64_t headDim = 32) {
  return {.name = std::move(name), .cache = DType::f16, .headDim = headDim, .valueHeadDim = headDim};
}

template <auto field>
NumberOption numberOption(const char* name, std::vector<double> valid, std::vector<double> invalid) {
  static constexpr auto set = []<typename Number>(Number& number, double to) { number = static_cast<Number>(to); };
  return {name,
          std::is_same_v<decltype(field), float AttentionOptions::*>,
          [](const AttentionOptions& options) { return static_cast<double>(options.*field); },
          [](AttentionOptions& options, double number) { set(options.*field, number); },
          std::move(valid),
          std::move(invalid)};
}

}  // namespace

std::span<const NumberOption> numberOptions() {
  static const NumberOption all[] = {
#include "Ops/FlashDecode/Generated/NumberOptions.inc"
  };
  static_assert(std::size(all) == std::tuple_size_v<decltype(numbersOf(AttentionOptions()))>,
                "an option has no valid numbers");
  return all;
}

void setFloats(AttentionOptions& options, Seeded* random) {
  for (const auto& [name, isFloat, get, set, valid, invalid] : numberOptions()) {
    if (!isFloat || get(options) != 0 || (random && random->below(3) != 0)) continue;
    set(options, valid[random ? random->below(valid.size()) : 0]);
  }
}

std::vector<Case> maskCases() {
  std::vector<Case> cases;
  for (uint32_t rank : {2u, 3u, 4u}) {
    for (DType dtype : kEveryFloat) {
      for (uint32_t served = 0; served < 8; ++served) {
        MaskCase mask{.dtype = dtype,
                      .rank = rank,
                      .servesAllSequences = (served & 4) != 0,
                      .servesAllHeads = (served & 2) != 0,
                      .servesAllRows = (served & 1) != 0};
        if ((rank < 4 && mask.servesAllSequences) || (rank < 3 && mask.servesAllHeads)) continue;
        const uint64_t number = cases.size();
        mask.extraKeys = number % 3 == 0 ? 5 : 0;
        mask.hasEmptyRows = number % 4 == 1;
        Case attend = smallCase(fmt::format("a mask of {} with {} axes, {:#b} of them 1", name(dtype), rank, served));
        attend.cacheSequences = 2;
        attend.layout = kEveryLayout[number % 2];
        attend.rows = 1 + number % 3;
        attend.rank = 4;
        attend.sequences = {{1, 23}, {0, 14}};
        attend.givesLogSumExp = number % 2 == 0;
        attend.options.splits = static_cast<uint32_t>(number % 4);
        attend.options.isCausal = number % 5 != 0;
        attend.mask = mask;
        if (number % 6 == 5) {
          attend.wrap = KVWrap::ring;
          attend.capacity = 11;
          attend.pinned = 2;
        }
        cases.push_back(attend);
      }
    }
  }
  Case attend = smallCase("rows that a mask closes altogether, in several passes");
  attend.rows = 11;
  attend.mask = {.hasEmptyRows = true};
  attend.givesLogSumExp = true;
  cases.push_back(attend);
  attend = smallCase("closed rows as partials");
  attend.rows = 4;
  attend.mask = {.hasEmptyRows = true};
  attend.givesPartials = true;
  cases.push_back(attend);
  return cases;
}

std::vector<Case> scoreCases() {
  std::vector<Case> cases;
  std::vector<AttentionOptions> scored{{}};
  for (const NumberOption& option : numberOptions()) {
    for (size_t i = 0; option.isFloat && i < 3; ++i) option.set(scored.emplace_back(), option.valid[i]);
  }
  for (const AttentionOptions& options : scored) {
    for (uint32_t with = 0; with < 8; ++with) {
      const uint64_t number = cases.size();
      Case attend = smallCase(fmt::format("numbers {}, with {:#b} of sinks, slopes, mask", number / 8, with),
                              number % 3 == 1 ? 64 : 32);
      attend.rows = 1 + number % 3;
      attend.sequences = {{0, 40}};
      attend.size = number % 2 ? 16.0f : 1.0f;
      attend.options = options;
      attend.options.splits = static_cast<uint32_t>(number % 3);
      attend.hasSlopes = (with & 2) != 0;
      attend.hasSinks = (with & 1) != 0;
      if (with & 4) attend.mask = {.hasHoles = number % 2 == 0};
      attend.givesLogSumExp = number % 4 != 1;
      cases.push_back(attend);
    }
  }
  for (bool isCoded : {false, true}) {
    Case attend = smallCase(fmt::format("slopes alone over {}", isCoded ? "codes" : "elements"), 64);
    attend.sequences = {{0, 40}};
    attend.hasSlopes = true;
    if (isCoded) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 4};
    cases.push_back(attend);
  }
  for (const NumberOption& option : numberOptions()) {
    for (size_t i = 0; option.isFloat && i < option.valid.size(); ++i) {
      Case attend = smallCase(fmt::format("a {} of {}", option.name, option.valid[i]));
      option.set(attend.options, option.valid[i]);
      attend.givesLogSumExp = true;
      cases.push_back(attend);
    }
  }
  for (uint32_t splits : {0u, 1u, 3u}) {
    for (bool hasLogSumExp : {false, true}) {
      Case attend = smallCase(fmt::format("partials from {} splits{}", splits, hasLogSumExp ? " and their sums" : ""),
                              hasLogSumExp ? 64 : 32);
      attend.rows = 1 + splits;
      attend.givesPartials = true;
      attend.givesLogSumExp = hasLogSumExp;
      attend.options.splits = splits;
      attend.options.isCausal = splits != 3;
      attend.options.window = splits == 1 ? 6 : 0;
      attend.hasScratch = hasLogSumExp;
      cases.push_back(attend);
    }
  }
  for (uint64_t length : {0, 1, 3}) {
    Case attend = smallCase(fmt::format("{} positions, sinks, a row's worth of window", length), length == 0 ? 64 : 32);
    attend.cacheSequences = 2;
    attend.rank = 4;
    attend.sequences = {{0, length}, {1, 4}};
    attend.hasSinks = true;
    attend.options.window = 1;
    attend.givesLogSumExp = true;
    cases.push_back(attend);
  }
  Case attend = smallCase("keys that come after the rows", 64);
  attend.rows = 3;
  attend.options.isCausal = false;
  cases.push_back(attend);
  attend = smallCase("the kernel that the op chooses");
  attend.options.kernel = AttentionOptions::Kernel::automatic;
  cases.push_back(attend);
  return cases;
}

std::vector<Case> queryCases() {
  std::vector<Case> cases;
  for (QueryPlaces places :
       {QueryPlaces::tokenMajor, QueryPlaces::headMajor, QueryPlaces::columns, QueryPlaces::gaps}) {
    for (uint64_t rows : {1, 3, 8, 11}) {
      for (uint64_t sequences : {1, 3}) {
        const uint64_t number = cases.size();
        Case attend = smallCase(
            fmt::format("{} rows of {} sequences in places {}", rows, sequences, static_cast<uint32_t>(places)),
            number % 3 == 0   ? 64
            : number % 3 == 1 ? 32
                              : 40);
        attend.cacheSequences = 3;
        attend.kvHeads = 1 + number % 3;
        attend.rows = rows;
        attend.rank = number % 4 == 1 ? 4 : 0;
        attend.queryPlaces = places;
        attend.queryGap = number % 5 == 2 ? 3 : 4;
        attend.queries = kEveryFloat[number / 2 % 3];
        attend.queryShift = number % 7 == 6 ? byteSize(attend.queries) : 0;
        attend.sequences = {{2, 23}, {0, 14}, {1, 11}};
        attend.sequences.resize(sequences);
        attend.resultRank = sequences == 1 ? static_cast<uint32_t>(rows == 1 ? 2 + number % 3 : 3 + number % 2) : 0;
        attend.into = kEveryFloat[number % 3];
        attend.options.splits = static_cast<uint32_t>(number % 3);
        if (number % 6 == 0) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 4};
        cases.push_back(attend);
      }
    }
  }
  return cases;
}

std::vector<Case> quantizedCases() {
  std::vector<Case> cases;
  const auto add = [&](const KVCodec& keys, const KVCodec& values, uint64_t headDim, uint64_t valueHeadDim = 0) {
    if (valueHeadDim == 0) valueHeadDim = headDim;
    const uint64_t number = cases.size();
    const bool isTurbo = keys.name == KVCodec::Name::turbo;
    const bool isRing = number % 4 == 2;
    cases.push_back(
        {.name = fmt::format("keys in {} at {}, values in {} at {}", keys.text(), headDim, values.text(), valueHeadDim),
         .keyCodec = keys,
         .valueCodec = values,
         .hasKeyMeans = isTurbo && number % 3 == 0,
         .hasValueMeans = isTurbo && number % 3 != 1,
         .hasChannelScales = isTurbo && number % 4 == 0,
         .hasWideScales = number % 2 == 1,
         .headDim = headDim,
         .valueHeadDim = valueHeadDim,
         .kvHeads = 1 + number % 2,
         .capacity = isRing ? 9u : 0u,
         .layout = kEveryLayout[number % 2],
         .wrap = isRing ? KVWrap::ring : KVWrap::linear,
         .pinned = isRing ? 2u : 0u,
         .queries = kEveryFloat[number % 3],
         .group = 1 + number % 3,
         .rows = 1 + number % 3,
         .sequences = {{0, 12 + number % 13}},
         .into = number % 3 == 1 ? DType::f16 : DType::f32,
         .givesPartials = number % 6 == 5,
         .givesLogSumExp = number % 5 == 0,
         .options = {.window = number % 7 == 3 ? 5u : 0u,
                     .splits = static_cast<uint32_t>(number % 4),
                     .kernel = AttentionOptions::Kernel::vector},
         .hasSinks = number % 6 == 4,
         .cacheShift = number % 8 == 7 ? 1 + number % 3 : 0});
  };
  // Every number of bits with every head dim as keys and as values; which of them meet goes round.
  for (uint32_t bits = 2; bits <= 8; ++bits) {
    for (uint64_t headDim : kTurboHeadDims) {
      const uint32_t other = 2 + (bits - 2 + static_cast<uint32_t>(headDim / 32)) % 7;
      add({.bits = bits}, {.bits = other}, headDim);
    }
  }
  // Values of another head dim than keys.
  constexpr KVCodec::Name kMlx1 = KVCodec::Name::mlx1;
  for (uint32_t bits = 2; bits <= 8; ++bits) add({.bits = bits}, {.bits = 10 - bits}, 192, 128);
  for (const auto& [keys, values] : {std::pair(128, 64), {32, 256}, {80, 192}, {112, 96}, {256, 80}, {64, 112}}) {
    for (uint32_t bits : {3, 4}) add({.bits = bits}, {.bits = bits + 1}, keys, values);
  }
  add({kMlx1, 4}, {kMlx1, 4}, 128, 64);
  add({kMlx1, 4}, {kMlx1, 5}, 32, 256);
  add({kMlx1, 6}, {kMlx1, 4}, 256, 64);
  // The same number of both, which share a table.
  for (uint32_t bits : {2u, 3u, 4u, 6u, 7u}) add({.bits = bits}, {.bits = bits}, bits == 2 ? 128 : 64);
  // More keys than the longest tiles have, for as many rows as fill one block of the matrix kernel, and two.
  for (uint64_t headDim : {64, 128, 256}) {
    for (uint64_t rows : {2, 4}) {
      add({.bits = rows == 2 ? 8u : 4u}, {.bits = 4}, headDim);
      Case& made = cases.back();
      made.name += fmt::format(", {} rows", 4 * rows);
      made.sequences = {{0, 64 + rows + headDim / 32}};
      made.group = 4;
      made.rows = rows;
      made.capacity = made.pinned = 0;
      made.wrap = KVWrap::linear;
      made.options.window = made.options.splits = 0;
    }
  }
  for (uint64_t headDim : {64, 128, 256, 512}) add({kMlx1, 4}, {kMlx1, 4}, headDim);
  for (uint32_t bits : {5u, 6u, 8u}) {
    for (uint64_t headDim : {256, 512}) add({kMlx1, bits}, {kMlx1, bits == 6 ? 4 : bits}, headDim);
    add({kMlx1, bits, 0.75f}, {kMlx1, 4, 16}, 512);
  }
  // What the mean of keys adds to scores shows in their sum, beside a sink and under a cap.
  for (uint64_t headDim : {64, 96, 128, 192, 256}) {
    add({.bits = 4}, {.bits = 5}, headDim);
    Case& attend = cases.back();
    attend.name += ", with a mean of keys that counts";
    attend.hasKeyMeans = true;
    attend.givesPartials = false;
    attend.givesLogSumExp = true;
    attend.hasSinks = headDim == 128;
    if (headDim == 256) setFloats(attend.options);
    attend.group = 3;
    attend.rows = 2;
  }
  // Tiles of many keys, and passes of many rows.
  for (uint64_t length : {129, 300}) {
    add({.bits = 4}, {.bits = 3}, 64);
    cases.back().sequences = {{0, length}};
    cases.back().name += fmt::format(", {} positions", length);
    cases.back().rows = length == 129 ? 9 : 1;
  }
  // Variants of mlx1. Each as often at even places, where mixedDecodeCases has dense keys, as at odd ones.
  constexpr KVCodec::Name kUnrotated = KVCodec::Name::mlx1Unrotated, kAffine4 = KVCodec::Name::mlx1Affine4;
  for (uint64_t headDim : {256, 512, 256, 512}) {
    for (uint32_t bits : {5u, 6u, 8u}) add({kUnrotated, bits}, {kUnrotated, bits == 5 ? 8 : bits}, headDim);
    add({kAffine4, 4}, {kAffine4, 4}, headDim);
    add({kAffine4, 4}, {kAffine4, 4}, headDim);
  }
  add({kUnrotated, 8, 0.75f}, {kUnrotated, 6, 16}, 512);
  add({kUnrotated, 5, 0.75f}, {kUnrotated, 8, 16}, 512);
  return cases;
}

std::vector<Case> mixedDecodeCases() {
  std::vector<Case> cases;
  const std::vector<Case> quantized = quantizedCases();
  for (Case attend : quantized) {
    const uint64_t number = cases.size();
    const bool hasDenseKeys = number % 2 == 0;
    attend.cache = kEveryFloat[number / 2 % 3];
    attend.cacheShift = number % 8 == 7 ? byteSize(attend.cache) : 0;
    attend.name += fmt::format(", but {} {}", hasDenseKeys ? "keys of" : "values of", name(attend.cache));
    if (hasDenseKeys) {
      attend.keyCodec.reset();
      attend.hasKeyMeans = attend.hasChannelScales = false;
    } else {
      attend.valueCodec.reset();
      attend.hasValueMeans = false;
    }
    cases.push_back(std::move(attend));
  }
  return cases;
}

}  // namespace mnk::test
