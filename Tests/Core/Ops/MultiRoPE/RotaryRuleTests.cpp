// Every rule of a RotaryEmbedding, broken on purpose.
#include <cmath>

#include "Harness/Check.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/MultiRoPE/MultiRoPE.hpp"

namespace mnk::test {

namespace {

template <typename... Sections>
void setSections(RotaryCheck& op, RotaryEmbedding::Layout layout, Sections... sections) {
  op.rotary.layout = layout;
  op.rotary.sections = {static_cast<uint32_t>(sections)...};
}

void useAxis3(RotaryCheck& op) {
  op.rotary.otherAxis = RotaryEmbedding::OtherAxis::axis3;
}

const Break<RotaryCheck> kBrokenEmbeddings[] = {
    [](RotaryCheck& op) { op.rotary.layout = static_cast<RotaryEmbedding::Layout>(3); },
    [](RotaryCheck& op) { op.rotary.pairing = static_cast<RotaryEmbedding::Pairing>(3); },
    [](RotaryCheck& op) { op.rotary.otherAxis = static_cast<RotaryEmbedding::OtherAxis>(2); },
    [](RotaryCheck& op) { op.headDim = 0; },
    [](RotaryCheck& op) { op.rotary.ropeDim = 7; },
    [](RotaryCheck& op) { op.rotary.ropeDim = 18; },
    [](RotaryCheck& op) { op.headDim = 2048; },
    [](RotaryCheck& op) { op.rotary.base = 0; },
    [](RotaryCheck& op) { op.rotary.base = -2; },
    [](RotaryCheck& op) { op.rotary.base = INFINITY; },
    [](RotaryCheck& op) { op.rotary.base = NAN; },
    [](RotaryCheck& op) { op.rotary.scale = 0; },
    [](RotaryCheck& op) { op.rotary.scale = NAN; },
    [](RotaryCheck& op) { setSections(op, {}, 0, 0, 8, 0); },
    [](RotaryCheck& op) { op.rotary.layout = RotaryEmbedding::Layout::mrope; },
    [](RotaryCheck& op) { setSections(op, RotaryEmbedding::Layout::vision, 0, 0, 4, 4); },
    [](RotaryCheck& op) { setSections(op, RotaryEmbedding::Layout::vision, 2, 2, 0, 0), op.rotary.ropeDim = 8; },
    [](RotaryCheck& op) { setSections(op, RotaryEmbedding::Layout::vision, 4, 3, 1, 0); },
    [](RotaryCheck& op) { setSections(op, RotaryEmbedding::Layout::vision, UINT32_MAX, 9, 0, 0); },
    [](RotaryCheck& op) { op.rotary.frequencyFactors.assign(16, 1); },
    [](RotaryCheck& op) { op.rotary.frequencyFactors = {1, 1, 1, 1, 1, 1, 1, 0}; },
    [](RotaryCheck& op) { op.rotary.frequencyFactors = {1, NAN, 1, 1, 1, 1, 1, 1}; },
    [](RotaryCheck& op) {
      setSections(op, RotaryEmbedding::Layout::vision, 4, 4, 0, 0),
          op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 4096};
    },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{}; },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .extensionFactor = NAN}; },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .extensionFactor = -1}; },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .extensionFactor = 1.5f}; },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .attentionFactor = 0}; },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .betaFast = INFINITY}; },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .betaSlow = -1}; },
    [](RotaryCheck& op) { op.rotary.base = 1, op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9}; },
    [](RotaryCheck& op) {
      op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .betaFast = 1, .betaSlow = 32};
    },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .betaFast = 2, .betaSlow = 2}; },
    [](RotaryCheck& op) { op.rotary.scale = 4, op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9}; },
    [](RotaryCheck& op) {
      op.rotary.scale = 1.5, op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .extensionFactor = 0.25f};
    },
    [](RotaryCheck& op) { op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .attentionFactor = 1e-45f}; },
    [](RotaryCheck& op) {
      op.rotary.scale = std::exp(-10.0),
      op.rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 9, .attentionFactor = 2e38f};
    },
    [](RotaryCheck& op) { op.rotary.scale = 100000; },
    [](RotaryCheck& op) { op.rotary.scale = 1e300, op.rotary.frequencyFactors.assign(8, 1e-30f); },
    [](RotaryCheck& op) { op.axes = 3, op.axesDiffer = true; },
    [](RotaryCheck& op) { setSections(op, RotaryEmbedding::Layout::mrope, 2, 3, 3, 0), op.axes = 2; },
    [](RotaryCheck& op) { setSections(op, RotaryEmbedding::Layout::imrope, 4, 2, 2, 0), useAxis3(op), op.axes = 3; },
};

constexpr GoldenText kEmbeddingErrors{
    "Ops/MultiRoPE/RotaryRules.inc",
#include "RotaryRules.inc"
};

}  // namespace

TEST(RotaryRules, EachHasItsError) {
  ErrorLines errors;
  expectRules<RotaryCheck>(errors, rotaryRules(), "Rotary", {.rotary = {}, .headDim = 16, .axes = 1}, kBrokenEmbeddings,
                           [](const RotaryCheck& op) { return checkRules(rotaryRules(), op, "Rotary"); });
  expectGolden(kEmbeddingErrors, errors.lines());
}

TEST(RotaryRules, WhatModelsShipIsSound) {
  const std::pair<RotaryEmbedding, uint64_t> models[] = {
      {{.layout = RotaryEmbedding::Layout::mrope, .sections = {16, 24, 24, 0}, .base = 1e6}, 128},
      {{.layout = RotaryEmbedding::Layout::imrope, .sections = {24, 20, 20, 0}, .base = 5e6}, 128},
      {{.layout = RotaryEmbedding::Layout::imrope, .sections = {11, 11, 10, 0}, .base = 1e7, .ropeDim = 64}, 256},
      {{.layout = RotaryEmbedding::Layout::vision, .sections = {18, 18, 18, 18}}, 72},
      {{.base = 1e6, .scale = 0.25, .yarn = RotaryEmbedding::YaRN{.originalContext = 32768}}, 128},
      {{.base = 1e6, .frequencyFactors = std::vector<float>(64, INFINITY)}, 128},
      {{.base = 0.5}, 64},
      {{.base = 0.5,
        .scale = 0.5,
        .yarn = RotaryEmbedding::YaRN{.extensionFactor = 0, .attentionFactor = 1.19f, .betaFast = 0}},
       64},
      // Without a blend, the betas are not read, and positions may be scaled up.
      {{.scale = 4, .yarn = RotaryEmbedding::YaRN{.extensionFactor = 0, .betaFast = 1, .betaSlow = 32}}, 64},
      {{.layout = RotaryEmbedding::Layout::mrope,
        .sections = {8, 12, 12, 0},
        .pairing = RotaryEmbedding::Pairing::neighbors},
       64},
      {{.base = 1}, MultiRoPE::kMaxRopeDim},
  };
  for (const auto& [rotary, headDim] : models) {
    for (const uint64_t axes : {1u, 3u, 4u}) {
      const auto checked = checkRules(rotaryRules(), RotaryCheck{rotary, headDim, axes}, "Rotary");
      EXPECT_EQ(checked ? "" : checked.error().message(), "");
    }
  }
}

}  // namespace mnk::test
