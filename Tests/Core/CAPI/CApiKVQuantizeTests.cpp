// KVCacheQuantize through the C API: every field of the descriptor arrives, and zeros are the defaults.
#include "CQuantizeFixture.hpp"

namespace mnk::test {

namespace {

using Slots = std::vector<int>;

}  // namespace

TEST(CApiKVQuantize, SourcesAndPlacesArrive) {
  QuantizeFixture fixture;
  fixture.op.position = 1;
  EXPECT_EQ(fixture.storedKeys(), (Slots{0, 1, 3, 5, 0, 0, 2, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(QuantizeFixture::vectorsIn(fixture.valueScales, fixture.valueUnit),
            (Slots{0, 1, 3, 5, 0, 0, 2, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  fixture.op.sequence = 1;
  fixture.op.source_offset = 1;
  EXPECT_EQ(fixture.storedKeys(), (Slots{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 5, 0, 0, 0, 4, 6, 0, 0}));
  fixture.op.has_tokens = true, fixture.op.tokens = 1;
  EXPECT_EQ(fixture.storedKeys(), (Slots{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4, 0, 0, 0}));
  fixture.op.source_is_ring = true, fixture.op.source_offset = 5, fixture.op.tokens = 2;
  EXPECT_EQ(fixture.storedKeys(), (Slots{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 6, 2, 0, 0}));
  fixture.op.into.wrap = MNK_RING, fixture.op.into.pinned = 2, fixture.op.position = 7;
  EXPECT_EQ(fixture.storedKeys(), (Slots{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5, 0, 0, 2, 0, 6}));
}

TEST(CApiKVQuantize, LayoutsArrive) {
  QuantizeFixture fixture;
  const uint64_t axes[] = {kHeads, kTokens, kHeadDim}, valueAxes[] = {kHeads, kTokens, kValueHeadDim};
  const Owned<mnk_tensor> keys(mnk_tensor_make_reshaped(fixture.keys.get(), axes, 3, nullptr), mnk_tensor_release);
  const Owned<mnk_tensor> values(mnk_tensor_make_reshaped(fixture.values.get(), valueAxes, 3, nullptr),
                                 mnk_tensor_release);
  fixture.op.keys = keys.get(), fixture.op.values = values.get();
  fixture.op.source_layout = MNK_HEAD_MAJOR;
  EXPECT_EQ(fixture.storedKeys(), (Slots{1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));

  const auto codes = makeTensor(fixture.device.get(), MNK_U8, {kCapacity, kHeads, kHeadDim / 2});
  const auto scales = makeTensor(fixture.device.get(), MNK_F16, {kCapacity, kHeads});
  fixture.op.values = nullptr;
  fixture.op.into.values = {};
  fixture.op.into.keys = QuantizeFixture::plane(4, codes, scales);
  fixture.op.into.layout = MNK_TOKEN_MAJOR;
  fixture.run();
  EXPECT_EQ(QuantizeFixture::vectorsIn(scales, fixture.keyUnit), (Slots{1, 4, 2, 5, 3, 6, 0, 0, 0, 0}));
}

TEST(CApiKVQuantize, RowsArriveFromListsAndTensors) {
  QuantizeFixture fixture;
  const uint32_t sequences[] = {1, 0, 1}, positions[] = {4, 0, 2};
  const Slots expected{3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 5, 0, 1, 0, 0, 6, 0, 2};
  fixture.op.has_rows = true;
  fixture.op.sequences = {.list = sequences, .list_count = 3, .tensor = nullptr};
  fixture.op.positions = {.list = positions, .list_count = 3, .tensor = nullptr};
  EXPECT_EQ(fixture.storedKeys(), expected);
  const auto tensor = makeTensor(fixture.device.get(), MNK_U32, {3});
  write(tensor, positions);
  fixture.op.positions = {.list = nullptr, .list_count = 0, .tensor = tensor.get()};
  EXPECT_EQ(fixture.storedKeys(), expected);
}

TEST(CApiKVQuantize, ZeroesAreTheDefaults) {
  QuantizeFixture fixture;
  // Vectors that differ in more than their size: for some of them another size than their own is better.
  auto elements = sizedVectors(kHeadDim);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i * i * 31 % 113) - 56;
  write(fixture.keys, elements.data());
  // Rules differ by less than an f16 can tell where there are many levels.
  Owned<mnk_tensor> valueCodes = makeTensor(fixture.device.get(), MNK_U8, {2, kHeads, kCapacity, kValueHeadDim / 4});
  fixture.op.into.values = QuantizeFixture::plane(2, valueCodes, fixture.valueScales);
  const auto bytes = [&] {
    fixture.run();
    std::vector<uint8_t> all;
    for (const auto* tensor : {&fixture.keyCodes, &fixture.keyScales, &valueCodes, &fixture.valueScales}) {
      const auto part = contents<uint8_t>(*tensor);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const auto byDefault = bytes();
  mnk_kv_quantize_options& options = fixture.op.options;
  const mnk_kv_quantize_options same{.candidates = 5,
                                     .key_scale = MNK_SCALE_UNBIASED,
                                     .value_scale = MNK_SCALE_LEAST_SQUARES,
                                     .non_finite = MNK_NON_FINITE_ZERO};
  options = same;
  EXPECT(bytes() == byDefault);
  // Each of them arrives: it changes what is stored.
  options = same, options.key_scale = MNK_SCALE_LEAST_SQUARES;
  EXPECT(bytes() != byDefault);
  options = same, options.value_scale = MNK_SCALE_UNBIASED;
  EXPECT(bytes() != byDefault);
  options = same, options.candidates = 1;
  EXPECT(bytes() != byDefault);

  fixture.op.into.keys.codec.scale_factor = 1;
  options = {};
  EXPECT(bytes() == byDefault);
}

TEST(CApiKVQuantize, CountsAndTheTreatmentOfNaNArrive) {
  QuantizeFixture fixture;
  auto elements = sizedVectors(kHeadDim);
  elements[kHeadDim + 3] = NAN;
  elements[2 * kHeadDim] = INFINITY;
  write(fixture.keys, elements.data());
  const auto counts = makeTensor(fixture.device.get(), MNK_U32, {2});
  fixture.op.counts = counts.get();
  EXPECT_EQ(fixture.storedKeys(), (Slots{1, 0, 5, 0, 0, 0, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(contents<uint32_t>(counts), (std::vector<uint32_t>{2, 0}));
  fixture.op.options.non_finite = MNK_NON_FINITE_PROPAGATE;
  fixture.run();
  EXPECT(isNaN(DType::f16, contents<uint16_t>(fixture.keyScales)[kCapacity]));
  EXPECT_EQ(contents<uint32_t>(counts), (std::vector<uint32_t>{4, 0}));
}

TEST(CApiKVQuantize, MeansAndChannelScalesArrive) {
  QuantizeFixture fixture;
  const auto elements = sizedVectors(kHeadDim);
  const auto means = makeTensor(fixture.device.get(), MNK_F32, {kHeads, kHeadDim});
  write(means, elements.data());  // the first token
  fixture.op.into.keys.means = means.get();
  // Of 1, 3, 5 the first is left nothing; of 2, 4, 6 as well.
  EXPECT_EQ(fixture.storedKeys(), (Slots{0, 2, 4, 0, 0, 0, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  const auto channels = makeTensor(fixture.device.get(), MNK_F32, {kHeads, kHeadDim});
  const std::vector<float> twos(kHeads * kHeadDim, 2);
  write(channels, twos.data());
  fixture.op.into.keys.channel_scales = channels.get();
  EXPECT_EQ(fixture.storedKeys(), (Slots{0, 4, 8, 0, 0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(CApiKVQuantize, TheOtherCodecItsFactorAndItsProbeArrive) {
  constexpr uint64_t headDim = 512;
  const auto device = makeDevice();
  const auto keys = makeTensor(device.get(), MNK_F32, {1, headDim});
  const auto codes = makeTensor(device.get(), MNK_U8, {1, 1, headDim});
  const auto scales = makeTensor(device.get(), MNK_F32, {1, 1, 2});
  const auto probe = makeTensor(device.get(), MNK_F32, {1, headDim});
  std::vector<float> elements(headDim);
  elements[0] = 1024;
  write(keys, elements.data());
  mnk_kv_cache_quantize op{};
  op.size = sizeof op;
  op.keys = keys.get();
  op.source_layout = MNK_TOKEN_MAJOR;
  op.into.size = sizeof op.into;
  op.into.keys = QuantizeFixture::plane(6, codes, scales);
  op.into.keys.codec.name = MNK_MLX1;
  op.probe = probe.get();
  runOp(device.get(), op, mnk_encoder_kv_cache_quantize);
  // One element becomes as many of the same size, 1024 / sqrt(512), which is the root mean square of both halves.
  EXPECT(std::abs(std::abs(contents<float>(probe)[9]) - 1) < 1e-5f);
  EXPECT(std::abs(contents<float>(scales)[1] / (1024 / std::sqrt(512.0f)) - 1) < 1e-5f);
  op.into.keys.codec.scale_factor = 0.5f;
  runOp(device.get(), op, mnk_encoder_kv_cache_quantize);
  EXPECT(std::abs(std::abs(contents<float>(probe)[9]) - 0.5f) < 1e-5f);
}

}  // namespace mnk::test
