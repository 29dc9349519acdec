#include <algorithm>

#include "Harness/Seeded.hpp"
#include "Ops/Common/TurboSigns.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

namespace mnk::test {

namespace {

using Case = KVCacheQuantizeCase;

constexpr DType kSources[] = {DType::f32, DType::f16, DType::bf16};
constexpr KVLayout kLayouts[] = {KVLayout::headMajor, KVLayout::tokenMajor};
constexpr uint32_t kCandidates[] = {1, 5, 17};

template <typename Item, size_t kCount>
Item drawn(Seeded& random, const Item (&items)[kCount]) {
  return items[random.below(kCount)];
}

struct Coded {
  KVCodec codec;
  uint64_t headDim;
};

// Every codec at every head dim.
std::vector<Coded> everyCodec() {
  std::vector<Coded> all;
  for (uint32_t bits = 2; bits <= 8; ++bits) {
    for (uint64_t headDim : kTurboHeadDims) all.push_back({{.bits = bits}, headDim});
  }
  for (uint64_t headDim = 4; headDim <= 4096; headDim *= 2) {
    all.push_back({{.name = KVCodecName::mlx1, .bits = 4}, headDim});
  }
  for (uint32_t bits : {5, 6, 8}) {
    for (uint64_t headDim : {256, 512}) all.push_back({{.name = KVCodecName::mlx1, .bits = bits}, headDim});
  }
  return all;
}

// A codec of this name with a head dim in this range.
Coded drawnCodec(Seeded& random, KVCodecName name, uint64_t shortest, uint64_t longest) {
  static const auto all = everyCodec();
  while (true) {
    const Coded& coded = all[random.below(all.size())];
    if (coded.codec.name == name && coded.headDim >= shortest && coded.headDim <= longest) return coded;
  }
}

// One for the values that go with keys. A lane takes as much of either, and no less than a 32nd of the longer.
Coded drawnBeside(Seeded& random, const Coded& keys, uint64_t longest) {
  return drawnCodec(random, keys.codec.name, keys.headDim / 32, std::min(longest, keys.headDim * 32));
}

KVQuantizeOptions drawnOptions(Seeded& random) {
  constexpr KVScaleRule kRules[] = {KVScaleRule::unbiased, KVScaleRule::leastSquares};
  return {.candidates = drawn(random, kCandidates),
          .keyScale = drawn(random, kRules),
          .valueScale = drawn(random, kRules),
          .nonFinite = random.below(2) ? KVNonFinite::zero : KVNonFinite::propagate};
}

// A case whose vectors, codecs and options are drawn by lot; where it reads and writes is given.
Case drawnCase(Seeded& random, KVCacheWriteCase write, uint64_t longest) {
  const KVCodecName codec = random.below(2) ? KVCodecName::turbo : KVCodecName::mlx1;
  const Coded keys = drawnCodec(random, codec, 1, longest);
  const Coded values = drawnBeside(random, keys, longest);
  write.source = drawn(random, kSources);
  write.headDim = keys.headDim;
  if (write.valueHeadDim) write.valueHeadDim = values.headDim;
  const bool isTurbo = codec == KVCodecName::turbo;
  return {.name = fmt::format("{}: {} {} at {} and {} at {}", write.name, name(write.source), keys.codec.text(),
                              keys.headDim, values.codec.text(), values.headDim),
          .write = write,
          .keyCodec = keys.codec,
          .valueCodec = values.codec,
          .options = drawnOptions(random),
          .hasMeans = isTurbo && random.below(4) == 0,
          .hasChannelScales = isTurbo && random.below(4) == 0,
          .hasCounts = random.below(4) == 0};
}

}  // namespace

std::vector<Case> codecCases() {
  Seeded random(1);
  std::vector<Case> cases;
  for (const auto& [codec, headDim] : everyCodec()) {
    for (DType source : kSources) {
      const Coded values = headDim > 512 ? Coded{} : drawnBeside(random, {codec, headDim}, 512);
      Case made{.name = fmt::format("{} {} at {}, values of {} bits at {}", name(source), codec.text(), headDim,
                                    values.codec.bits, values.headDim),
                .write = {.source = source,
                          .sourceLayout = drawn(random, kLayouts),
                          .cacheLayout = drawn(random, kLayouts),
                          .heads = headDim > 512 ? 1u : 3u,
                          .headDim = headDim,
                          .valueHeadDim = values.headDim,
                          .capacity = 3,
                          .sourceTokens = 2,
                          .position = 2},
                .keyCodec = codec,
                .valueCodec = values.codec,
                .options = drawnOptions(random)};
      // The first dtype is coded byte for byte.
      if (source == DType::f32) made.options.candidates = 1;
      if (codec.name == KVCodecName::mlx1 && headDim == 512 && source == DType::f16) {
        made.keyCodec.scaleFactor = 1.5f;
        made.name += ", scale factor 1.5";
      }
      cases.push_back(made);
    }
  }
  return cases;
}

std::vector<Case> headCases() {
  Seeded random(2);
  std::vector<Case> cases;
  for (const KVCodecName codec : {KVCodecName::turbo, KVCodecName::mlx1}) {
    for (const auto& [each, headDim] : everyCodec()) {
      if (each != KVCodec{.name = codec, .bits = 4} || (headDim > 128 && headDim != 192)) continue;
      for (uint64_t heads : {1, 2, 3, 5, 8, 9, 33}) {
        const Coded values = drawnBeside(random, {{.name = codec, .bits = 4}, headDim}, 128);
        cases.push_back(
            {.name = fmt::format("{} heads of {} at {}, values at {}", heads, name(codec), headDim, values.headDim),
             .write = {.cacheLayout = drawn(random, kLayouts),
                       .heads = heads,
                       .headDim = headDim,
                       .valueHeadDim = heads == 3 ? 0 : values.headDim,
                       .capacity = 2,
                       .sourceTokens = 2},
             .keyCodec = {.name = codec, .bits = 4},
             .valueCodec = values.codec,
             .options = drawnOptions(random)});
      }
    }
  }
  return cases;
}

std::vector<Case> placeCases() {
  Seeded random(3);
  std::vector<Case> cases;
  for (auto make : {extentCases, wrapCases, pinnedCases, farCases, linearizeCases, rowCases, sourceCases}) {
    for (const KVCacheWriteCase& write : make()) {
      const bool isLong = write.sourceTokens > 100;
      if (random.below(6) != 0 && !isLong) continue;
      cases.push_back(drawnCase(random, write, isLong ? 32 : 128));
      KVCacheWriteCase& drawn = cases.back().write;
      if (drawn.sourceShift) drawn.sourceShift = byteSize(drawn.source);
    }
  }
  return cases;
}

std::vector<Case> addressCases() {
  Seeded random(4);
  std::vector<Case> cases;
  for (DType source : kSources) {
    for (uint64_t shift = 0; shift <= 16; ++shift) {
      KVCacheWriteCase write{.name = fmt::format("codes at byte {}", shift),
                             .heads = 2,
                             .capacity = 3,
                             .sourceTokens = 2,
                             .sourceShift = random.below(17) / byteSize(source) * byteSize(source),
                             .cacheShift = shift,
                             .position = 2};
      Case made = drawnCase(random, write, 512);
      made.write.source = source;
      made.scaleShift = random.below(9) * byteSize(made.keyCodec.scaleType());
      made.name +=
          fmt::format(", source {} at byte {}, scales at byte {}", name(source), write.sourceShift, made.scaleShift);
      cases.push_back(made);
    }
  }
  // A byte for each code, of which a lane has as many as are moved at once.
  for (uint32_t bits : {5u, 6u, 8u}) {
    for (uint64_t headDim : {256, 512}) {
      for (uint64_t shift : {4, 8}) {
        cases.push_back({.name = fmt::format("mlx1 of {} bits at {}, codes at byte {}", bits, headDim, shift),
                         .write = {.headDim = headDim, .valueHeadDim = 0, .cacheShift = shift},
                         .keyCodec = {KVCodecName::mlx1, bits},
                         .options = {.candidates = 1}});
      }
    }
  }
  // A source that is aligned for elements alone, with everything else in order.
  for (DType source : kSources) {
    for (const auto& [codec, headDim] : everyCodec()) {
      if (headDim > 512 || random.below(3) != 0) continue;
      cases.push_back(
          {.name = fmt::format("{} one element off, {} at {}", name(source), codec.text(), headDim),
           .write = {.source = source, .headDim = headDim, .valueHeadDim = 0, .sourceShift = byteSize(source)},
           .keyCodec = codec,
           .options = {.candidates = 1}});
    }
  }
  return cases;
}

std::vector<Case> optionCases() {
  Seeded random(5);
  std::vector<Case> cases;
  for (uint32_t candidates : kCandidates) {
    for (KVScaleRule rule : {KVScaleRule::unbiased, KVScaleRule::leastSquares}) {
      for (uint32_t flags = 0; flags < 16; ++flags) {
        const Coded keys = drawnCodec(random, KVCodecName::turbo, 32, 256);
        const Coded values = drawnCodec(random, KVCodecName::turbo, 32, 256);
        cases.push_back(
            {.name = fmt::format("{} candidates, {} for keys, {} means, {} channel scales, {} counts, {} NaN; {} at {}",
                                 candidates, rule == KVScaleRule::unbiased ? "unbiased" : "least squares",
                                 flags & 1 ? "with" : "no", flags & 2 ? "with" : "no", flags & 4 ? "with" : "no",
                                 flags & 8 ? "with" : "no", keys.codec.text(), keys.headDim),
             .write = {.source = drawn(random, kSources),
                       .heads = 3,
                       .headDim = keys.headDim,
                       .valueHeadDim = random.below(4) ? values.headDim : 0,
                       .capacity = 8,
                       .sourceTokens = 5,
                       .position = 6},
             .keyCodec = keys.codec,
             .valueCodec = values.codec,
             .options = {.candidates = candidates,
                         .keyScale = rule,
                         .valueScale =
                             rule == KVScaleRule::unbiased ? KVScaleRule::leastSquares : KVScaleRule::unbiased,
                         .nonFinite = flags & 8 ? KVNonFinite::propagate : KVNonFinite::zero},
             .hasMeans = (flags & 1) != 0,
             .hasChannelScales = (flags & 2) != 0,
             .hasCounts = (flags & 4) != 0});
      }
    }
  }
  return cases;
}

std::vector<Case> probeCases() {
  Seeded random(6);
  std::vector<Case> cases;
  for (const auto& [codec, headDim] : everyCodec()) {
    if (codec.name != KVCodecName::mlx1) continue;
    for (bool isRank2 : {false, true}) {
      cases.push_back(
          {.name = fmt::format("probe of {} at {}, source of rank {}", codec.text(), headDim, isRank2 ? 2 : 3),
           .write = {.source = drawn(random, kSources),
                     .heads = headDim > 512 ? 1u : 3u,
                     .headDim = headDim,
                     .valueHeadDim = headDim > 512 || isRank2 ? 0u : 16u,
                     .isSourceRank2 = isRank2,
                     .position = 5},
           .keyCodec = codec,
           .valueCodec = {.name = KVCodecName::mlx1, .bits = 4},
           .hasCounts = isRank2,
           .hasProbe = true});
    }
  }
  return cases;
}

std::vector<Case> mixedCases() {
  Seeded random(7);
  std::vector<Case> cases;
  for (bool hasDenseKeys : {true, false}) {
    for (DType source : kSources) {
      for (DType cache : kSources) {
        for (uint64_t kind = 0; kind < 4; ++kind) {
          const auto codec = kind == 3 ? KVCodecName::mlx1 : KVCodecName::turbo;
          const Coded coded = drawnCodec(random, codec, 32, 512);
          const uint64_t other = coded.codec.bits == 4 || codec == KVCodecName::turbo ? 32 << random.below(5) : 256;
          cases.push_back(
              {.name = fmt::format("dense {} of {} in {} at {}, beside {} at {}", hasDenseKeys ? "keys" : "values",
                                   name(source), name(cache), other, coded.codec.text(), coded.headDim),
               .write = {.source = source,
                         .cache = cache,
                         .cacheLayout = kind % 2 ? KVLayout::tokenMajor : KVLayout::headMajor,
                         .wrap = KVWrap::ring,
                         .pinned = static_cast<uint32_t>(random.below(3)),
                         .heads = 1 + random.below(5),
                         .headDim = hasDenseKeys ? other : coded.headDim,
                         .valueHeadDim = hasDenseKeys ? coded.headDim : other,
                         .capacity = 8,
                         .sourceTokens = kind == 2 ? 300u : 5u,
                         .cacheShift = kind == 1 ? byteSize(cache) : 0,
                         .position = 6},
               .keyCodec = coded.codec,
               .valueCodec = coded.codec,
               .hasMeans = codec == KVCodecName::turbo && kind == 1,
               .hasCounts = kind == 0,
               .hasDenseKeys = hasDenseKeys,
               .hasDenseValues = !hasDenseKeys});
        }
      }
    }
  }
  return cases;
}

std::vector<Case> allQuantizeCases() {
  std::vector<Case> all;
  for (auto make : {codecCases, headCases, placeCases, addressCases, optionCases, probeCases, mixedCases}) {
    const auto cases = make();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace mnk::test
