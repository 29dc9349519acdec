// The sizes of codecs and of quantized caches through the C API.
#include "CApiHarness.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

TEST(CApiKVCodec, SizesOfCodecsAndCaches) {
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
