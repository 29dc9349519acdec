// Latent caches: the absorbed attention of DeepSeek-V2 and V3, which stores for each token one latent vector, shared by
// all heads as keys and values, and one rotated key. AttentionCacheProperty checks all calls on latent caches.
#include <cmath>

#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kLatent = 512, kRest = 64, kHeads = 4;
constexpr uint64_t kNoPosition = 24, kOut = 16;  // dimensions of a head's unrotated query part, and of its value
const AttentionOptions kScaled{.scale = 1 / std::sqrt(static_cast<float>(kNoPosition + kRest))};
const AttentionCacheDescriptor kLatentDescriptor{
    .kvHeads = 1, .headDim = kRest, .capacity = 40, .sequences = 2, .dtype = DType::f32, .latentDim = kLatent};

double product(const float* a, const float* b, uint64_t count) {
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += double{a[i]} * b[i];
  return sum;
}

}  // namespace

// The paper's definition: keys [W_UK c; k_R] and values W_UV c of each head, for tokens c and k_R. Absorbed attention
// has queries [W_UK^T q_C; q_R], and W_UV multiplies its results.
TEST(AttentionCacheLatent, AbsorbedAttentionEqualsUnabsorbed) {
  constexpr uint64_t kTokens = 21;
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionFixture fixture(device, kLatentDescriptor);
    const auto some = [&](uint64_t count) { return smallNumbers(fixture.random, count); };
    const std::vector<float> latent = some(kTokens * kLatent), rest = some(kTokens * kRest);
    const std::vector<float> queryC = some(kHeads * kNoPosition), queryR = some(kHeads * kRest);
    const std::vector<float> upKey = some(kHeads * kNoPosition * kLatent), upValue = some(kHeads * kOut * kLatent);
    std::vector<float> absorbed;
    for (uint64_t head = 0; head < kHeads; ++head) {
      for (uint64_t j = 0; j < kLatent; ++j) {
        double sum = 0;
        for (uint64_t i = head * kNoPosition; i < (head + 1) * kNoPosition; ++i)
          sum += queryC[i] * upKey[i * kLatent + j] / 16;
        absorbed.push_back(static_cast<float>(sum));
      }
      absorbed.insert(absorbed.end(), &queryR[head * kRest], &queryR[head * kRest] + kRest);
    }
    const Tensor out = fixture.zeros({1, kHeads, kLatent});
    REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
      REQUIRE(fixture.cache.append(encoder, fixture.tensor(rest, {kTokens, 1, kRest}),
                                   fixture.tensor(latent, {kTokens, 1, kLatent}), 0));
      return fixture.cache.attend(encoder, fixture.tensor(absorbed, {1, kHeads, kLatent + kRest}), {.output = out},
                                  kScaled, 0);
    }));
    const std::vector<float> results = floatsOf(out);
    double wrong = 0, size = 0;
    for (uint64_t head = 0; head < kHeads; ++head) {
      std::vector<double> weights;
      double sum = 0;
      for (uint64_t t = 0; t < kTokens; ++t) {
        double score = product(&queryR[head * kRest], &rest[t * kRest], kRest);
        for (uint64_t i = head * kNoPosition; i < (head + 1) * kNoPosition; ++i) {
          score += queryC[i] * product(&upKey[i * kLatent], &latent[t * kLatent], kLatent) / 16;
        }
        sum += weights.emplace_back(std::exp(score / std::sqrt(double{kNoPosition + kRest})));
      }
      for (uint64_t i = head * kOut; i < (head + 1) * kOut; ++i) {
        double expected = 0;
        for (uint64_t t = 0; t < kTokens; ++t) {
          expected += weights[t] / sum * product(&upValue[i * kLatent], &latent[t * kLatent], kLatent);
        }
        const double got = product(&upValue[i * kLatent], &results[head * kLatent], kLatent);
        wrong += (got - expected) * (got - expected);
        size += expected * expected;
      }
    }
    EXPECT(wrong < 1e-10 * size);
  });
}

TEST(AttentionCacheLatent, DescribesItself) {
  const AttentionCache cache = makeCache(FakeDevice::make(), kLatentDescriptor);
  EXPECT_EQ(cache.descriptor().valueHeadDim, kLatent);
  EXPECT_EQ(cache.view().latentDim, kLatent);
  EXPECT_EQ(cache.bytesPerToken(), (kLatent + kRest) * sizeof(float));
  EXPECT(cache.text().starts_with("1 head of 64 behind a latent part of 512 as f32"));
}

TEST(AttentionCacheLatent, NeedsAScaleAndRotatedKeys) {
  const auto device = FakeDevice::make();
  AttentionCache cache = makeCache(device, kLatentDescriptor);
  CacheStep step{.queries = tokens(device, 4, kHeads, kLatent + kRest),
                 .keys = tokens(device, 4, 1, kRest),
                 .values = tokens(device, 4, 1, kLatent),
                 .results = {.output = tokens(device, 4, kHeads, kLatent)},
                 .sequences = {0}};
  CommandEncoder encoder(device);
  EXPECT_ERROR(cache.appendAndAttend(encoder, step), {.what = "attention over a latent cache has no scale"});
  step.options = kScaled;
  step.rotary.emplace();
  EXPECT_ERROR(cache.appendAndAttend(encoder, step),
               {.what = "a latent cache cannot rotate",
                .got = "a rotary embedding, and a latent part of 512",
                .expected = "keys and queries that are rotated already",
                .fix = "Rotate the keys and the last part of the queries with MultiRoPE, and leave `rotary` out."});
  EXPECT_EQ(*cache.nextPosition(0), 0u);
}

}  // namespace mnk::test
