// Latent caches: the absorbed attention of DeepSeek-V2 and V3, which stores for each token one latent vector, shared by
// all heads as keys and values, and one rotated key.
#include <cmath>
#include <tuple>

#include "Harness/EveryDevice.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"

namespace mnk::test {

namespace {

using Numbers = std::vector<double>;

constexpr uint64_t kLatent = 512, kRest = 64, kHeads = 4;
constexpr uint64_t kNoPosition = 24, kOut = 16;  // dimensions of a head's unrotated query part, and of its value

AttentionCacheDescriptor latentDescriptor(uint32_t capacity = 40) {
  return {
      .kvHeads = 1, .headDim = kRest, .capacity = capacity, .sequences = 2, .dtype = DType::f32, .latentDim = kLatent};
}

AttentionOptions scaled() {
  return {.scale = 1 / std::sqrt(static_cast<float>(kNoPosition + kRest))};
}

// The attention of one layer: c_t and k_R of tokens, q_C and q_R of a query, W_UK and W_UV.
class LatentLayer {
 public:
  LatentLayer(uint64_t tokens, uint64_t rows)
      : tokens_(tokens),
        rows_(rows),
        latent_(smallNumbers(random_, tokens * kLatent)),
        rest_(smallNumbers(random_, tokens * kRest)),
        queryC_(smallNumbers(random_, rows * kHeads * kNoPosition)),
        queryR_(smallNumbers(random_, rows * kHeads * kRest)),
        upKey_(smallNumbers(random_, kHeads * kNoPosition * kLatent)),
        upValue_(smallNumbers(random_, kHeads * kOut * kLatent)) {
    for (float& x : upKey_) x /= 16;
  }

  const std::vector<float>& latent() const { return latent_; }
  const std::vector<float>& rest() const { return rest_; }

  // The paper's definition: keys [W_UK c; k_R] and values W_UV c of each head. [rows, heads, kOut]
  Numbers unabsorbed(uint64_t window) const {
    Numbers out;
    for (uint64_t row = 0; row < rows_; ++row) {
      const uint64_t position = tokens_ - rows_ + row;
      for (uint64_t head = 0; head < kHeads; ++head) {
        Numbers weights(position + 1);
        double sum = 0;
        for (uint64_t t = 0; t <= position; ++t) {
          if (position - t >= window) continue;
          double score = 0;
          for (uint64_t i = 0; i < kNoPosition; ++i) {
            score += queryC_[(row * kHeads + head) * kNoPosition + i] * up(upKey_, head * kNoPosition + i, t);
          }
          for (uint64_t i = 0; i < kRest; ++i) {
            score += double{queryR_[(row * kHeads + head) * kRest + i]} * rest_[t * kRest + i];
          }
          sum += weights[t] = std::exp(score / std::sqrt(static_cast<double>(kNoPosition + kRest)));
        }
        for (uint64_t i = 0; i < kOut; ++i) {
          double total = 0;
          for (uint64_t t = 0; t <= position; ++t) total += weights[t] * up(upValue_, head * kOut + i, t);
          out.push_back(total / sum);
        }
      }
    }
    return out;
  }

  // Queries of absorbed attention, [W_UK^T q_C; q_R]: [rows, heads, kLatent + kRest]
  std::vector<float> absorbedQueries() const {
    std::vector<float> queries;
    for (uint64_t row = 0; row < rows_ * kHeads; ++row) {
      for (uint64_t j = 0; j < kLatent; ++j) {
        double sum = 0;
        for (uint64_t i = 0; i < kNoPosition; ++i) {
          sum += double{queryC_[row * kNoPosition + i]} * upKey_[(row % kHeads * kNoPosition + i) * kLatent + j];
        }
        queries.push_back(static_cast<float>(sum));
      }
      for (uint64_t i = 0; i < kRest; ++i) queries.push_back(queryR_[row * kRest + i]);
    }
    return queries;
  }

  // Multiplies the results of absorbed attention by W_UV, which gives the layer's output.
  std::vector<float> projected(const std::vector<float>& results) const {
    std::vector<float> out;
    for (uint64_t row = 0; row < rows_ * kHeads; ++row) {
      for (uint64_t i = 0; i < kOut; ++i) {
        double sum = 0;
        for (uint64_t j = 0; j < kLatent; ++j) {
          sum += double{upValue_[(row % kHeads * kOut + i) * kLatent + j]} * results[row * kLatent + j];
        }
        out.push_back(static_cast<float>(sum));
      }
    }
    return out;
  }

 private:
  double up(const std::vector<float>& matrix, uint64_t row, uint64_t token) const {
    double sum = 0;
    for (uint64_t j = 0; j < kLatent; ++j) sum += double{matrix[row * kLatent + j]} * latent_[token * kLatent + j];
    return sum;
  }

  Seeded random_{3};
  uint64_t tokens_;
  uint64_t rows_;
  std::vector<float> latent_, rest_, queryC_, queryR_, upKey_, upValue_;
};

// A cache and a layer's tokens.
struct LatentFixture {
  LatentFixture(std::shared_ptr<Device> onDevice, const AttentionCacheDescriptor& descriptor, uint64_t tokens,
                uint64_t rows)
      : device(std::move(onDevice)), cache(makeCache(device, descriptor)), layer(tokens, rows) {}

  std::shared_ptr<Device> device;
  AttentionCache cache;
  LatentLayer layer;

  Tensor part(const std::vector<float>& all, uint64_t dim, uint64_t first, uint64_t count) const {
    const auto begin = all.begin() + static_cast<int64_t>(first * dim);
    return numbers(device, {begin, begin + static_cast<int64_t>(count * dim)}, REQUIRE(Shape::make({count, 1, dim})));
  }
  Tensor keys(uint64_t first, uint64_t count) const { return part(layer.rest(), kRest, first, count); }
  Tensor values(uint64_t first, uint64_t count) const { return part(layer.latent(), kLatent, first, count); }
  Tensor queries(uint64_t rows) const {
    return numbers(device, layer.absorbedQueries(), REQUIRE(Shape::make({rows, kHeads, kLatent + kRest})));
  }
  Tensor results(uint64_t rows) const {
    return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({rows, kHeads, kLatent}))));
  }
  // Results after tokens were appended one by one.
  std::vector<float> attended(uint64_t tokens, uint64_t rows, const AttentionOptions& options) {
    const Tensor into = results(rows);
    CommandEncoder encoder(device);
    for (uint64_t t = 0; t < tokens; ++t) REQUIRE(cache.append(encoder, keys(t, 1), values(t, 1), 0));
    REQUIRE(cache.attend(encoder, queries(rows), {.output = into}, options, 0));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    return floatsOf(into);
  }
};

double relativeError(const std::vector<float>& got, const Numbers& expected) {
  double wrong = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    wrong += (got.at(i) - expected[i]) * (got.at(i) - expected[i]);
    size += expected[i] * expected[i];
  }
  return got.size() == expected.size() ? wrong / size : INFINITY;
}

}  // namespace

TEST(AttentionCacheLatent, AbsorbedAttentionEqualsUnabsorbed) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const uint64_t rows : {1, 3}) {
      LatentFixture of(device, latentDescriptor(), 21, rows);
      const auto got = of.layer.projected(of.attended(21, rows, scaled()));
      EXPECT(relativeError(got, of.layer.unabsorbed(UINT64_MAX)) < 1e-10);
    }
  });
}

// Bounds on the squared error of 8-bit and 4-bit codes.
TEST(AttentionCacheLatent, QuantizationErrorMatchesTheCodec) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const auto both = KVQuantizedPlanes::both, values = KVQuantizedPlanes::values;
    for (const auto& [bits, planes, most] :
         {std::tuple(8u, both, 1e-3), std::tuple(4u, both, 0.05), std::tuple(4u, values, 0.05)}) {
      AttentionCacheDescriptor descriptor = latentDescriptor();
      descriptor.quantized = KVQuantizedStorage{.keyBits = bits, .valueBits = bits, .planes = planes};
      LatentFixture of(device, descriptor, 21, 2);
      const auto got = of.layer.projected(of.attended(21, 2, scaled()));
      const double error = relativeError(got, of.layer.unabsorbed(UINT64_MAX));
      if (!(error < most)) fail(__FILE__, __LINE__, fmt::format("{} bits bring an error of {}", bits, error));
    }
  });
}

TEST(AttentionCacheLatent, RingsServeWindows) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    AttentionCacheDescriptor descriptor = latentDescriptor(0);
    descriptor.slidingWindow = {.window = 6, .maxRows = 2};
    LatentFixture of(device, descriptor, 21, 2);
    const auto got = of.layer.projected(of.attended(21, 2, scaled()));
    EXPECT(relativeError(got, of.layer.unabsorbed(6)) < 1e-10);
  });
}

TEST(AttentionCacheLatent, AStepIsOneCall) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    LatentFixture of(device, latentDescriptor(), 12, 12);
    const Tensor into = of.results(12);
    CacheStep step{.queries = of.queries(12),
                   .keys = of.keys(0, 12),
                   .values = of.values(0, 12),
                   .results = {.output = into},
                   .options = scaled(),
                   .sequences = {1}};
    REQUIRE(CommandEncoder::run(
        device, [&](CommandEncoder& encoder) { return of.cache.appendAndAttend(encoder, step); }, "step"));
    EXPECT(relativeError(of.layer.projected(floatsOf(into)), of.layer.unabsorbed(UINT64_MAX)) < 1e-10);
    EXPECT_EQ(*of.cache.nextPosition(1), 12u);
    // A copy that is truncated by one token gives the result of the next-to-last row.
    CommandEncoder encoder(device);
    REQUIRE(of.cache.copy(encoder, 1, 0));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    REQUIRE(of.cache.truncate(11, 0));
    const Tensor row = REQUIRE(of.queries(12).slice(10, 1)), one = of.results(1);
    REQUIRE(CommandEncoder::run(
        device, [&](CommandEncoder& next) { return of.cache.attend(next, row, {.output = one}, scaled(), 0); },
        "again"));
    const auto all = floatsOf(into), again = floatsOf(one);
    for (uint64_t i = 0; i < again.size(); ++i) {
      EXPECT(std::abs(again[i] - all[10 * kHeads * kLatent + i]) <= kF32Sums);
    }
  });
}

TEST(AttentionCacheLatent, DescribesItself) {
  const AttentionCache cache = makeCache(FakeDevice::make(), latentDescriptor());
  EXPECT_EQ(cache.descriptor().valueHeadDim, kLatent);
  EXPECT_EQ(cache.view().latentDim, kLatent);
  EXPECT_EQ(cache.bytesPerToken(), (kLatent + kRest) * sizeof(float));
  EXPECT(cache.text().starts_with("1 head of 64 behind a latent part of 512 as f32"));
}

TEST(AttentionCacheLatent, NeedsAScaleAndRotatedKeys) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    LatentFixture of(device, latentDescriptor(), 4, 4);
    CacheStep step{.queries = of.queries(4),
                   .keys = of.keys(0, 4),
                   .values = of.values(0, 4),
                   .results = {.output = of.results(4)},
                   .sequences = {0}};
    CommandEncoder encoder(device);
    EXPECT_ERROR(of.cache.appendAndAttend(encoder, step), {.what = "attention over a latent cache has no scale"});
    step.options = scaled();
    step.rotary.emplace();
    EXPECT_ERROR(of.cache.appendAndAttend(encoder, step),
                 {.what = "a latent cache cannot rotate",
                  .got = "a rotary embedding, and a latent part of 512",
                  .expected = "keys and queries that are rotated already",
                  .fix = "Rotate the keys and the last part of the queries with MultiRoPE, and leave `rotary` out."});
    EXPECT_EQ(*of.cache.nextPosition(0), 0u);
  });
}

}  // namespace mnk::test
