// The sizes of codecs and of quantized caches through the C API.
#include "CApiHarness.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

TEST(CApiKVCodec, SizesOfCodecsAndCaches) {
  Refusals no;
  mnk_kv_codec codec{.name = MNK_KV_CODEC_NAME_TURBO, .bits = 3, .scale_factor = 0};
  mnk_kv_codec_sizes sizes{};
  EXPECT(mnk_kv_codec_get_sizes(&codec, 128, &sizes, no.out()));
  EXPECT(sizes.code_bytes == 48 && sizes.scales == 1 && sizes.scale_bytes == 2);
  codec = {.name = MNK_KV_CODEC_NAME_MLX1, .bits = 5, .scale_factor = 0};
  EXPECT(mnk_kv_codec_get_sizes(&codec, 512, &sizes, no.out()));
  EXPECT(sizes.code_bytes == 512 && sizes.scales == 2 && sizes.scale_bytes == 8);
  no(mnk_kv_codec_get_sizes(&codec, 128, &sizes, no.out()));
  codec = {.name = MNK_KV_CODEC_NAME_MLX1_UNROTATED, .bits = 8, .scale_factor = 0};
  EXPECT(mnk_kv_codec_get_sizes(&codec, 512, &sizes, no.out()));
  EXPECT(sizes.code_bytes == 512 && sizes.scales == 2 && sizes.scale_bytes == 8);
  codec = {.name = MNK_KV_CODEC_NAME_MLX1_AFFINE4, .bits = 4, .scale_factor = 0};
  EXPECT(mnk_kv_codec_get_sizes(&codec, 512, &sizes, no.out()));
  EXPECT(sizes.code_bytes == 256 && sizes.scales == 1 && sizes.scale_bytes == 4);
  no(mnk_kv_codec_get_sizes(&codec, 128, &sizes, no.out()));
  codec.name = number<mnk_kv_codec_name>(4);
  no(mnk_kv_codec_get_sizes(&codec, 512, &sizes, no.out()));
  no(mnk_kv_codec_get_sizes(nullptr, 512, &sizes, no.out()));
  no(mnk_kv_codec_get_sizes(&codec, 512, nullptr, no.out()));

  mnk_quantized_cache_extents extents{};
  extents.keys.bits = 4;
  extents.head_dim = 128, extents.heads = 8, extents.capacity = 4096;
  uint64_t bytes = 0;
  EXPECT(mnk_quantized_cache_get_byte_count(&extents, &bytes, no.out()));
  EXPECT_EQ(bytes, 66u * 8 * 4096);
  extents.has_values = true, extents.sequences = 3;
  EXPECT(mnk_quantized_cache_get_byte_count(&extents, &bytes, no.out()));
  EXPECT_EQ(bytes, 2u * 66 * 8 * 4096 * 3);
  extents.values = {.name = MNK_KV_CODEC_NAME_MLX1, .bits = 8, .scale_factor = 0}, extents.value_head_dim = 256;
  EXPECT(mnk_quantized_cache_get_byte_count(&extents, &bytes, no.out()));
  EXPECT_EQ(bytes, (66u + 260) * 8 * 4096 * 3);
  const mnk_quantized_cache_extents sound = extents;
  extents.has_values = false;
  no(mnk_quantized_cache_get_byte_count(&extents, &bytes, no.out()));
  extents.values = {};
  no(mnk_quantized_cache_get_byte_count(&extents, &bytes, no.out()));
  extents = sound;
  extents.capacity = uint64_t{1} << 60;
  no(mnk_quantized_cache_get_byte_count(&extents, &bytes, no.out()));
  extents.values.bits = 7;
  no(mnk_quantized_cache_get_byte_count(&extents, &bytes, no.out()));
  no(mnk_quantized_cache_get_byte_count(nullptr, &bytes, no.out()));
}

}  // namespace mnk::test
