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

// Cases that are drawn, and those of models, break no rule either.
TEST(RotaryRules, AcceptsWhatIsNotRead) {
  const RotaryEmbedding::YaRN unused{.extensionFactor = 0, .attentionFactor = 1.19f, .betaFast = 0};
  for (const RotaryEmbedding& rotary : {RotaryEmbedding{.base = 0.5, .scale = 4, .yarn = unused},
                                        RotaryEmbedding{.frequencyFactors = std::vector<float>(64, INFINITY)}}) {
    REQUIRE(checkRules(rotaryRules(), RotaryCheck{rotary, 128, 1}, "Rotary"));
  }
}

}  // namespace mnk::test
