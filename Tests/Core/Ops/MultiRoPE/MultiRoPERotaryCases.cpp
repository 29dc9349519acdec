// The lists about what turns how far; those about memory and positions are in MultiRoPECases.cpp.
#include <limits>

#include "Harness/Check.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"

namespace mnk::test::rope {

namespace {

using Case = MultiRoPECase;
using Placing = RopePlacing;
using Layout = RotaryLayout;

}  // namespace

std::vector<Case> extentCases() {
  std::vector<Case> cases;
  for (uint64_t headDim : {2, 4, 6, 64, 80, 96, 128, 256, 512}) {
    for (Layout layout : kLayouts) {
      for (Placing placing : {Placing::inPlace, Placing::apart}) {
        Case rope = rotated(fmt::format("{}, heads of {}, {}", text(layout), headDim, text(placing)), headDim,
                            rotaryOf(layout, headDim / 2));
        rope.placing = placing;
        rope.into = placing == Placing::apart ? DType::f16 : DType::f32;
        rope.tokens = headDim > 128 ? 1 : 2;
        cases.push_back(rope);
      }
    }
  }
  return cases;
}

std::vector<Case> partialCases() {
  std::vector<Case> cases;
  const auto add = [&](uint64_t headDim, uint64_t ropeDim, uint64_t shift) {
    for (Layout layout : {Layout::interleavedPairs, Layout::halfSplit, Layout::mrope, Layout::imrope}) {
      for (RotaryPairing pairing : kPairings) {
        for (Placing placing : {Placing::inPlace, Placing::apart}) {
          Case rope = rotated(fmt::format("{} of {} elements turn, {}, {}, {}, shift {}", ropeDim, headDim,
                                          text(layout), text(pairing), text(placing), shift),
                              headDim, rotaryOf(layout, ropeDim / 2));
          rope.rotary.ropeDim = ropeDim;
          rope.rotary.pairing = pairing;
          rope.placing = placing;
          rope.fromShift = shift;
          rope.tokens = 2;
          cases.push_back(rope);
        }
      }
    }
  };
  for (uint64_t headDim : {4, 6, 8, 16, 24}) {
    for (uint64_t ropeDim = 2; ropeDim <= headDim; ropeDim += 2) {
      add(headDim, ropeDim, 0);
      if (headDim % 8 == 0 && ropeDim % 8 == 0) add(headDim, ropeDim, 1);
    }
  }
  for (const auto& [headDim, ropeDim] : {std::pair{64, 32}, {80, 32}, {96, 48}, {128, 96}, {256, 64}}) {
    add(static_cast<uint64_t>(headDim), static_cast<uint64_t>(ropeDim), 0);
  }
  return cases;
}

std::vector<Case> sectionCases() {
  std::vector<Case> cases;
  const auto add = [&](std::string_view whose, uint64_t headDim, uint64_t ropeDim, RotaryEmbedding rotary) {
    rotary.ropeDim = ropeDim;
    const auto& s = rotary.sections;
    cases.push_back(rotated(fmt::format("{}: {} [{}, {}, {}, {}] of {} / {}, {}, spare pairs on axis {}", whose,
                                        text(rotary.layout), s[0], s[1], s[2], s[3], ropeDim, headDim,
                                        text(rotary.pairing), rotary.otherAxis == RotaryOtherAxis::axis0 ? 0 : 3),
                            headDim, rotary));
  };
  add("Qwen2-VL", 128, 128, {.layout = Layout::mrope, .sections = {16, 24, 24}, .base = 1e6});
  for (RotaryOtherAxis otherAxis : kOtherAxes) {
    for (const auto& sections :
         {std::array{24u, 20u, 20u, 0u}, {16u, 24u, 24u, 0u}, {20u, 20u, 20u, 4u}, {0u, 0u, 0u, 64u}}) {
      add("Qwen3-VL", 128, 128, {.layout = Layout::imrope, .sections = sections, .base = 5e6, .otherAxis = otherAxis});
    }
    for (RotaryPairing pairing : kPairings) {
      add("Qwen3.5", 256, 64,
          {.layout = Layout::imrope,
           .sections = {11, 11, 10},
           .base = 1e7,
           .pairing = pairing,
           .otherAxis = otherAxis});
    }
    // Rounds that end before the pairs do, or far behind them.
    constexpr uint32_t third = 1431655766;  // three of them are 2 more than 2^32
    for (const auto& sections : {std::array{1u, 0u, 0u, 0u},
                                 {0u, 1u, 0u, 0u},
                                 {0u, 0u, 2u, 0u},
                                 {0u, 0u, 0u, 1u},
                                 {2u, 2u, 1u, 0u},
                                 {1u, 1u, 1u, 1u},
                                 {3u, 0u, 2u, 0u},
                                 {0u, 3u, 1u, 1u},
                                 {5u, 1u, 1u, 0u},
                                 {1u, 2u, 3u, 4u},
                                 {100u, 50u, 25u, 0u},
                                 {third, third, third, 0u}}) {
      for (Layout layout : {Layout::mrope, Layout::imrope}) {
        add("other", 24, 24, {.layout = layout, .sections = sections, .otherAxis = otherAxis});
        add("other", 24, 10, {.layout = layout, .sections = sections, .otherAxis = otherAxis});
      }
    }
  }
  add("GLM-4V", 128, 64, {.layout = Layout::mrope, .sections = {8, 12, 12}, .pairing = RotaryPairing::neighbors});
  for (uint32_t first = 0; first <= 8; ++first) {
    add("an image", 16, 16, {.layout = Layout::vision, .sections = {first, 8 - first, 7, 9}});
  }
  for (uint32_t pairs : {32, 36, 40, 48}) {
    add("an image", 2 * pairs, 2 * pairs, {.layout = Layout::vision, .sections = {pairs / 2, pairs / 2}});
  }
  return cases;
}

std::vector<Case> scalingCases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, const RotaryEmbedding& rotary) {
    for (bool isInverse : {false, true}) {
      Case rope = rotated(name + (isInverse ? ", inverse" : ""), 32, rotary);
      rope.rotary.isInverse = isInverse;
      rope.firstPosition = 4321;
      cases.push_back(rope);
    }
  };
  for (Layout layout : kLayouts) {
    for (double scale : {1.0, 0.25, 1.0 / 3, 40.0}) {
      RotaryEmbedding rotary = rotaryOf(layout, 16);
      rotary.scale = scale;
      add(fmt::format("{} at scale {}", text(layout), scale), rotary);
      constexpr float infinity = std::numeric_limits<float>::infinity();
      for (size_t pair = 0; pair < 16; ++pair) {
        rotary.frequencyFactors.push_back(pair % 5 == 3 ? infinity : 0.5f + 0.37f * static_cast<float>(pair));
      }
      add(fmt::format("{} at scale {} with factors", text(layout), scale), rotary);
      if (layout == Layout::vision) continue;
      rotary.yarn = YaRN{.originalContext = 4096, .attentionFactor = 1.25f};
      add(fmt::format("{} at scale {} with factors and YaRN", text(layout), scale), rotary);
    }
  }
  for (uint64_t context : {1, 64, 4096, 32768, 1000000}) {
    for (float extension : {0.0f, 0.5f, 1.0f}) {
      for (double scale : {1.0, 0.25}) {
        for (const auto& [fast, slow] : {std::pair{32.0f, 1.0f}, {8.0f, 2.0f}, {1.0f, 32.0f}, {4.0f, 4.0f}}) {
          add(fmt::format("YaRN of {} tokens, extension {}, scale {}, betas {} and {}", context, extension, scale, fast,
                          slow),
              {.layout = cases.size() % 4 < 2 ? Layout::halfSplit : Layout::interleavedPairs,
               .scale = scale,
               .yarn = YaRN{.originalContext = context,
                            .extensionFactor = extension,
                            .attentionFactor = cases.size() % 6 < 2 ? 1.0f : 0.75f,
                            .betaFast = fast,
                            .betaSlow = slow}});
        }
      }
    }
  }
  for (uint64_t context : {4096, 131072}) {
    YaRN yarn{.originalContext = context, .roundsCorners = false};
    add(fmt::format("YaRN of {} tokens with corners between pairs", context),
        {.base = 150000, .scale = 1.0 / 32, .yarn = yarn});
    yarn.attentionFactor = 1.19f;
    yarn.extensionFactor = 0;
    yarn.originalContext = 0;
    add("a factor alone", {.base = 150000, .scale = 0.5, .yarn = yarn});
  }
  add("YaRN whose ramp would end behind the last element",
      {.base = 50, .scale = 0.25, .yarn = YaRN{.originalContext = 1000000, .betaFast = 60000}});
  for (double base : {1.5, 500000.0, 5e6, 1e7, 0.5}) add(fmt::format("base {}", base), {.base = base});
  return cases;
}

}  // namespace mnk::test::rope
