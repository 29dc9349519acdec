// KVCacheQuantize on every device against the reference.
#include <array>
#include <set>

#include "KVCacheQuantizeRun.hpp"

namespace mnk::test {

namespace {

std::string codingText(const DrawnCoding& coding) {
  return fmt::format("{} of {} bits at {}", name(coding.codec.name), coding.codec.bits, coding.headDim);
}

}  // namespace

TEST(KVCacheQuantize, FollowsTheReference) {
  const std::vector<KVCacheQuantizeCase> cases = drawnQuantizes(kDrawnQuantizes);
  std::set<std::string> seen;
  for (const KVCacheQuantizeCase& quantize : cases) {
    const KVCacheWriteCase& write = quantize.write;
    if (write.sourceTokens == 0 || write.heads == 0) continue;
    if (!quantize.hasDenseKeys) seen.insert(codingText({quantize.keyCodec, write.headDim}));
    if (!quantize.hasDenseValues) seen.insert(codingText({quantize.valueCodec, write.valueHeadDim}));
  }
  for (const DrawnCoding& coding : everyCoding()) {
    if (!seen.contains(codingText(coding))) fail(__FILE__, __LINE__, "no case stores " + codingText(coding));
  }
  runOnEveryDevice(cases);
}
TEST(KVCacheQuantize, SharesManyVectorsAmongFewerLanes) {
  runOnEveryDevice(manyVectorsCases());
}
TEST(KVCacheQuantize, ProbeReturnsNormalizedElements) {
  runOnEveryDevice(probeCases());
}

// What counts is what is left when means and channel scales are applied: nothing, or more than f32 holds.
TEST(KVCacheQuantize, JudgesVectorsByWhatIsCoded) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    std::array<float, 64> means, channelScales;
    means.fill(3.7f);
    channelScales.fill(-2.0f);
    channelScales[40] = 1e10f;
    const VectorCoding coding{.codec = {.bits = 5}, .means = means, .channelScales = channelScales};
    Seeded random;
    std::vector<std::vector<float>> vectors(4, normalVector(random, 64));
    vectors[1].assign(64, 3.7f);
    vectors[2][40] = 1e30f;
    const StoredVectors got = stored(device, coding, vectors);
    EXPECT_EQ(got.counts[0], 1u);
    for (size_t v = 0; v < vectors.size(); ++v)
      EXPECT_EQ(fault(coding, encoded(coding, widened(vectors[v])), got.vectors[v]), "");
    EXPECT_EQ(got.vectors[1].scales[0], 0u);
    EXPECT_EQ(got.vectors[2].scales[0], 0u);
    EXPECT(got.vectors[3].bytes == got.vectors[0].bytes);
  });
}

}  // namespace mnk::test
