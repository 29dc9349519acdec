// KVCacheDequantize, Hadamard and the sizes of codecs through the C API: every field of a descriptor arrives.
#include "CQuantizeFixture.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

TEST(CApiKVQuantize, WhatIsStoredIsReadBack) {
  QuantizeFixture fixture;
  fixture.op.sequence = 1, fixture.op.position = 2;
  fixture.run();
  mnk_kv_cache_dequantize op{};
  op.size = sizeof op;
  op.from = fixture.op.into;
  op.sequence = 1, op.position = 2;
  const auto keys = makeTensor(fixture.device.get(), MNK_F32, {kTokens, kHeads, kHeadDim});
  const auto values = makeTensor(fixture.device.get(), MNK_F32, {kTokens, kHeads, kValueHeadDim});
  op.keys = keys.get(), op.values = values.get();
  op.layout = MNK_TOKEN_MAJOR;
  const auto errorOf = [](const std::vector<float>& got, const std::vector<float>& expected) {
    double error = 0, all = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += std::pow(double{got[i]} - expected[i], 2);
      all += std::pow(expected[i], 2);
    }
    return error / all;
  };
  runOp(fixture.device.get(), op, mnk_encoder_kv_cache_dequantize);
  // The error of the best 16 and 256 levels for the normal distribution is 0.0095 and 0.00004 of the square.
  EXPECT(errorOf(contents<float>(keys), sizedVectors(kHeadDim)) < 0.02);
  EXPECT(errorOf(contents<float>(values), sizedVectors(kValueHeadDim)) < 0.0002);

  // The same in the rotated domain, turned back.
  const auto straight = contents<float>(values);
  op.domain = MNK_ROTATED_DOMAIN;
  op.keys = nullptr;
  runOp(fixture.device.get(), op, mnk_encoder_kv_cache_dequantize);
  EXPECT(errorOf(contents<float>(values), straight) > 0.1);
  mnk_hadamard turn{};
  turn.size = sizeof turn;
  turn.from = values.get();
  turn.has_signs = true, turn.signs = MNK_TURBO, turn.is_inverse = true;
  runOp(fixture.device.get(), turn, mnk_encoder_hadamard);
  EXPECT(errorOf(contents<float>(values), straight) < 1e-12);

  // Head-major from the second token on.
  const auto later = makeTensor(fixture.device.get(), MNK_F32, {kHeads, 2, kValueHeadDim});
  op.domain = MNK_ORIGINAL_DOMAIN, op.layout = MNK_HEAD_MAJOR, op.position = 3, op.values = later.get();
  runOp(fixture.device.get(), op, mnk_encoder_kv_cache_dequantize);
  EXPECT_EQ(contents<float>(later)[kValueHeadDim], straight[4 * kValueHeadDim]);
  EXPECT_EQ(contents<float>(later)[2 * kValueHeadDim], straight[3 * kValueHeadDim]);
}

TEST(CApiKVQuantize, FieldsOfHadamardArrive) {
  const auto device = makeDevice();
  const auto from = makeTensor(device.get(), MNK_F32, {1, 256});
  const auto into = makeTensor(device.get(), MNK_F32, {1, 256});
  std::vector<float> elements(256);
  elements[1] = 16;
  write(from, elements.data());
  mnk_hadamard op{};
  op.size = sizeof op;
  op.from = from.get(), op.into = into.get();
  const auto turned = [&] {
    runOp(device.get(), op, mnk_encoder_hadamard);
    return contents<float>(op.into ? into : from);
  };
  const auto plain = turned();
  EXPECT_EQ(plain[0], 1.0f);
  EXPECT_EQ(plain[1], -1.0f);
  EXPECT_EQ(contents<float>(from), elements);
  // The first byte of mlx1's signs is 0xa7: elements 0, 1, 2 are negative, 3 is not.
  op.has_signs = true, op.signs = MNK_MLX1;
  EXPECT_EQ(turned()[0], -1.0f);
  op.is_inverse = true;
  const auto inverse = turned();
  EXPECT_EQ(inverse[0], -1.0f);
  EXPECT_EQ(inverse[1], 1.0f);
  EXPECT_EQ(inverse[3], -1.0f);
  op.signs = MNK_TURBO;
  EXPECT(turned() != inverse);
  // In place, there and back.
  op.into = nullptr;
  turned();
  op.is_inverse = false;
  EXPECT_EQ(turned(), elements);
}

TEST(CApiKVQuantize, SizesOfCodecsAndCaches) {
  Caught caught;
  mnk_kv_codec codec{.name = MNK_TURBO, .bits = 3, .scale_factor = 0};
  mnk_kv_codec_sizes sizes{};
  EXPECT(mnk_kv_codec_get_sizes(&codec, 128, &sizes, caught.out()));
  EXPECT_EQ(sizes.code_bytes, 48u);
  EXPECT_EQ(sizes.scales, 1u);
  EXPECT_EQ(sizes.scale_bytes, 2u);
  codec = {.name = MNK_MLX1, .bits = 5, .scale_factor = 0};
  EXPECT(mnk_kv_codec_get_sizes(&codec, 512, &sizes, caught.out()));
  EXPECT_EQ(sizes.code_bytes, 512u);
  EXPECT_EQ(sizes.scales, 2u);
  EXPECT_EQ(sizes.scale_bytes, 8u);
  EXPECT(!mnk_kv_codec_get_sizes(&codec, 128, &sizes, caught.out()));
  EXPECT(caught.isSet());
  codec.name = number<mnk_kv_codec_name>(2);
  EXPECT(!mnk_kv_codec_get_sizes(&codec, 512, &sizes, caught.out()));
  caught.expect({.op = "C API", .what = "not a codec", .got = "2", .expected = "MNK_TURBO or MNK_MLX1"});
  EXPECT(!mnk_kv_codec_get_sizes(nullptr, 512, &sizes, caught.out()));
  caught.expect({.op = "C API", .what = "codec is missing"});
  EXPECT(!mnk_kv_codec_get_sizes(&codec, 512, nullptr, caught.out()));
  caught.expect({.op = "C API", .what = "sizes is missing"});

  mnk_quantized_cache_extents extents{};
  extents.size = sizeof extents;
  extents.keys.bits = 4;
  extents.head_dim = 128, extents.heads = 8, extents.capacity = 4096;
  uint64_t bytes = 0;
  EXPECT(mnk_quantized_cache_get_bytes(&extents, &bytes, caught.out()));
  EXPECT_EQ(bytes, 66u * 8 * 4096);
  extents.has_values = true, extents.sequences = 3;
  EXPECT(mnk_quantized_cache_get_bytes(&extents, &bytes, caught.out()));
  EXPECT_EQ(bytes, 2u * 66 * 8 * 4096 * 3);
  extents.values = {.name = MNK_MLX1, .bits = 8, .scale_factor = 0}, extents.value_head_dim = 256;
  EXPECT(mnk_quantized_cache_get_bytes(&extents, &bytes, caught.out()));
  EXPECT_EQ(bytes, (66u + 260) * 8 * 4096 * 3);
  extents.capacity = uint64_t{1} << 60;
  EXPECT(!mnk_quantized_cache_get_bytes(&extents, &bytes, caught.out()));
  caught.expect({.op = "QuantizedKVCacheView", .what = "too many bytes to count", .expected = "less than 2^64"});
  extents.values.bits = 7;
  EXPECT(!mnk_quantized_cache_get_bytes(&extents, &bytes, caught.out()));
  extents.size = 8;
  EXPECT(!mnk_quantized_cache_get_bytes(&extents, &bytes, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_quantized_cache_extents has the wrong size"});
  EXPECT(!mnk_quantized_cache_get_bytes(nullptr, &bytes, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_quantized_cache_extents is missing"});
}

}  // namespace mnk::test
