// Quantized caches and their files through the C API.
#include "CAPI/Handles.hpp"
#include "CApiHarness.hpp"
#include "Cache/CacheFileFixture.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

// A cache of turbo with means of its keys, and tokens for it.
struct QuantizedFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> means = makeTensor(device.get(), MNK_F32, {2, 32});
  Owned<mnk_tensor> keys = makeTensor(device.get(), MNK_F32, {3, 2, 32});
  mnk_attention_cache_descriptor descriptor{.kv_heads = 2,
                                            .head_dim = 32,
                                            .capacity = 4,
                                            .sequences = 2,
                                            .when_full = MNK_KV_WRAP_RING,
                                            .pinned = 1,
                                            .has_quantized = true,
                                            .quantized = {.key_bits = 3, .value_bits = 3, .key_means = means.get()}};
  mnk_kv_quantized_storage& quantization = descriptor.quantized;

  QuantizedFixture() {
    std::vector<float> elements(3 * 2 * 32);
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i % 13) - 6;
    write(keys, elements.data());
  }

  Owned<mnk_cache> make(mnk_error_out error = nullptr) const {
    return {mnk_cache_make(device.get(), &descriptor, error), mnk_cache_release};
  }
  Owned<mnk_cache> makeDense(mnk_dtype dtype) {
    mnk_attention_cache_descriptor dense = descriptor;
    dense.has_quantized = false, dense.quantized = {}, dense.dtype = dtype;
    return {mnk_cache_make(device.get(), &dense, nullptr), mnk_cache_release};
  }
  void append(mnk_cache* cache) const {
    const auto encoder = makeEncoder(device.get());
    EXPECT(test::append(encoder.get(), cache, keys.get(), keys.get(), 1));
    commit(encoder);
  }
};

std::vector<std::byte> cacheBytes(const mnk_cache* cache) {
  std::vector<std::byte> all;
  for (const auto make :
       {mnk_cache_make_keys, mnk_cache_make_key_scales, mnk_cache_make_values, mnk_cache_make_value_scales}) {
    const auto bytes = contents<std::byte>({make(cache, nullptr), mnk_tensor_release});
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

TEST(CApiCache, SizesAreThoseOfTheCache) {
  const QuantizedFixture fixture;
  const auto cache = fixture.make();
  EXPECT_EQ(mnk_cache_bytes_per_token(cache.get()), cache->cache.bytesPerToken());
  EXPECT_EQ(mnk_cache_byte_count(cache.get()), cache->cache.byteCount());
  EXPECT_EQ(mnk_cache_bytes_saved(cache.get()), cache->cache.bytesSaved());
  EXPECT(cache->cache.bytesSaved() > 0);
}

TEST(CApiCache, KeysOrValuesAloneAreQuantized) {
  QuantizedFixture fixture;
  fixture.quantization = {.value_bits = 5, .planes = MNK_KV_QUANTIZED_PLANES_VALUES};  // no bits for keys
  fixture.descriptor.dtype = MNK_BF16;
  const auto cache = fixture.make();
  const mnk_attention_cache_descriptor made = mnk_cache_get_descriptor(cache.get());
  EXPECT(made.dtype == MNK_BF16 && made.has_quantized && made.quantized.planes == MNK_KV_QUANTIZED_PLANES_VALUES);
  EXPECT(made.quantized.key_bits == 0 && made.quantized.value_bits == 5);
  const Owned<mnk_tensor> keys(mnk_cache_make_keys(cache.get(), nullptr), mnk_tensor_release);
  EXPECT(mnk_tensor_dtype(keys.get()) == MNK_BF16 && mnk_tensor_extent(keys.get(), 3) == 32);
  const Owned<mnk_tensor> scales(mnk_cache_make_value_scales(cache.get(), nullptr), mnk_tensor_release);
  EXPECT(mnk_tensor_dtype(scales.get()) == MNK_F16);
  Refusals no;
  no(mnk_cache_make_key_scales(cache.get(), no.out()));
  fixture.quantization.planes = number<mnk_kv_quantized_planes>(3);
  no(fixture.make(no.out()));
}

TEST(CApiCache, ADenseCacheIsMadeIntoAQuantizedOne) {
  QuantizedFixture fixture;
  const auto expected = fixture.make(), dense = fixture.makeDense(MNK_F32);
  fixture.append(expected.get());
  fixture.append(dense.get());
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  no(mnk_encoder_make_quantized_cache(encoder.get(), dense.get(), nullptr, no.out()));
  no(mnk_encoder_make_quantized_cache(nullptr, dense.get(), &fixture.quantization, no.out()));
  no(mnk_encoder_make_quantized_cache(encoder.get(), expected.get(), &fixture.quantization, no.out()));
  const Owned<mnk_cache> made(
      mnk_encoder_make_quantized_cache(encoder.get(), dense.get(), &fixture.quantization, nullptr), mnk_cache_release);
  EXPECT_EQ(nextPosition(made.get(), 1), 0u);
  commit(encoder);
  EXPECT_EQ(nextPosition(made.get(), 1), 3u);
  EXPECT(cacheBytes(made.get()) == cacheBytes(expected.get()));
}

TEST(CApiCache, CachesGrowAndSequencesMove) {
  QuantizedFixture fixture;
  const auto cache = fixture.make();
  fixture.append(cache.get());
  fixture.append(cache.get());  // which wraps
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  no(mnk_encoder_make_grown_cache(nullptr, cache.get(), 9, no.out()));
  no(mnk_encoder_make_grown_cache(encoder.get(), nullptr, 9, no.out()));
  no(mnk_encoder_make_grown_cache(encoder.get(), cache.get(), 3, no.out()));
  const Owned<mnk_cache> larger(mnk_encoder_make_grown_cache(encoder.get(), cache.get(), 9, nullptr),
                                mnk_cache_release);
  EXPECT_EQ(nextPosition(larger.get(), 1), 0u);
  no(mnk_encoder_copy_sequence_to_cache(nullptr, cache.get(), 1, larger.get(), 0, no.out()));
  no(mnk_encoder_copy_sequence_to_cache(encoder.get(), nullptr, 1, larger.get(), 0, no.out()));
  no(mnk_encoder_copy_sequence_to_cache(encoder.get(), cache.get(), 1, nullptr, 0, no.out()));
  no(mnk_encoder_copy_sequence_to_cache(encoder.get(), cache.get(), 2, larger.get(), 0, no.out()));
  const auto dense = fixture.makeDense(MNK_F32);
  no(mnk_encoder_copy_sequence_to_cache(encoder.get(), cache.get(), 1, dense.get(), 0, no.out()));
  EXPECT(mnk_encoder_copy_sequence_to_cache(encoder.get(), cache.get(), 1, larger.get(), 0, nullptr));
  commit(encoder);
  EXPECT_EQ(mnk_cache_get_descriptor(larger.get()).capacity, 9u);
  for (const uint32_t sequence : {0, 1}) {
    EXPECT_EQ(nextPosition(larger.get(), sequence), 6u);
    EXPECT_EQ(sequenceOf(larger.get(), sequence).count, 4u);
  }
  // What was saved can be loaded into as many slots.
  const CacheFolder folder;
  EXPECT(mnk_cache_save(cache.get(), folder.path().c_str(), nullptr));
  const Owned<mnk_cache> loaded(
      mnk_cache_make_from_path(fixture.device.get(), folder.path().c_str(), kPlenty, 9, nullptr), mnk_cache_release);
  EXPECT_EQ(mnk_cache_get_descriptor(loaded.get()).capacity, 9u);
  EXPECT_EQ(sequenceOf(loaded.get(), 1).count, 4u);
  no(mnk_cache_make_from_path(fixture.device.get(), folder.path().c_str(), kPlenty, 3, no.out()));
}

TEST(CApiCache, ADescriptorComesBackWithoutDefaults) {
  QuantizedFixture fixture;
  fixture.quantization.options = {.candidates = 17, .value_scale = MNK_KV_SCALE_RULE_UNBIASED};
  const auto cache = fixture.make();
  const mnk_attention_cache_descriptor made = mnk_cache_get_descriptor(cache.get());
  EXPECT(made.kv_heads == 2 && made.head_dim == 32 && made.value_head_dim == 32);
  EXPECT(made.capacity == 4 && made.sequences == 2 && made.when_full == MNK_KV_WRAP_RING && made.pinned == 1);
  EXPECT(made.has_quantized);
  const mnk_kv_quantized_storage& quantization = made.quantized;
  EXPECT(quantization.codec == MNK_KV_CODEC_NAME_TURBO && quantization.key_bits == 3 && quantization.value_bits == 3);
  EXPECT(quantization.scale_factor == 1 && quantization.options.candidates == 17);
  EXPECT(quantization.options.key_scale == MNK_KV_SCALE_RULE_UNBIASED);
  EXPECT(quantization.options.value_scale == MNK_KV_SCALE_RULE_UNBIASED);
  EXPECT(quantization.options.non_finite == MNK_KV_NON_FINITE_PROPAGATE);
  EXPECT(quantization.key_means && quantization.key_means != fixture.means.get());
  EXPECT(!quantization.value_means && !quantization.key_channel_scales);
  // Another cache can be made of it.
  const Owned<mnk_cache> again(mnk_cache_make(fixture.device.get(), &made, nullptr), mnk_cache_release);
  EXPECT_EQ(mnk_cache_byte_count(again.get()), mnk_cache_byte_count(cache.get()));

  fixture.descriptor.head_dim = 64;
  fixture.descriptor.latent_dim = 512;
  const auto dense = fixture.makeDense(MNK_F16);
  const mnk_attention_cache_descriptor latent = mnk_cache_get_descriptor(dense.get());
  EXPECT(!latent.has_quantized && latent.dtype == MNK_F16);
  EXPECT(latent.latent_dim == 512 && latent.value_head_dim == 512 && latent.head_dim == 64);
  EXPECT_EQ(mnk_cache_get_descriptor(nullptr).kv_heads, 0u);
  Refusals no;
  no(mnk_cache_make_key_scales(dense.get(), no.out()));
  no(mnk_cache_make_value_scales(dense.get(), no.out()));
}

TEST(CApiCache, SavedCachesComeBack) {
  const QuantizedFixture fixture;
  const CacheFolder folder;
  const auto cache = fixture.make();
  fixture.append(cache.get());
  fixture.append(cache.get());
  EXPECT(mnk_cache_save(cache.get(), folder.path().c_str(), nullptr));
  const auto load = [&](const char* name, uint64_t most, mnk_error_out error) {
    return Owned<mnk_cache>(mnk_cache_make_from_path(fixture.device.get(), folder.path(name).c_str(), most, 0, error),
                            mnk_cache_release);
  };
  const auto loaded = load("cache", mnk_cache_byte_count(cache.get()), nullptr);
  EXPECT_EQ(nextPosition(loaded.get(), 1), 6u);
  EXPECT_EQ(sequenceOf(loaded.get(), 1).count, 4u);
  EXPECT(cacheBytes(loaded.get()) == cacheBytes(cache.get()));
  Caught caught;
  EXPECT(!load("cache", 1, caught.out()));
  caught.expect({.op = "AttentionCache", .what = "larger than allowed"});
  EXPECT(!load("none", kPlenty, caught.out()));
  caught.expect({.op = "AttentionCache", .what = "there is no such file"});
  EXPECT(!mnk_cache_save(cache.get(), folder.path("none/cache").c_str(), caught.out()));
  caught.expect({.op = "AttentionCache", .what = "no file can be made beside the path"});
}

TEST(CApiCache, DequantizesPositionsThatAreHeld) {
  const QuantizedFixture fixture;
  const auto cache = fixture.make();
  fixture.append(cache.get());
  const auto make = [&] { return makeTensor(fixture.device.get(), MNK_F32, {2, 2, 32}); };
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  const auto dequantize = [&](const mnk_tensor* keys, const mnk_tensor* values, uint64_t position,
                              mnk_kv_domain domain) {
    return mnk_encoder_dequantize(encoder.get(), cache.get(), keys, values, position, 1, domain, no.out());
  };
  for (const mnk_kv_domain domain : {MNK_KV_DOMAIN_ORIGINAL, MNK_KV_DOMAIN_ROTATED}) {
    const auto keys = make(), values = make(), twinKeys = make(), twinValues = make();
    const auto run = makeEncoder(fixture.device.get());
    EXPECT(mnk_encoder_dequantize(run.get(), cache.get(), keys.get(), values.get(), 1, 1, domain, nullptr));
    REQUIRE(cache->cache.dequantize(run->encoder, twinKeys->tensor, twinValues->tensor, 1, 1,
                                    static_cast<KVDomain>(domain)));
    commit(run);
    EXPECT(contents<float>(keys) == contents<float>(twinKeys) && contents<float>(keys) != std::vector<float>(128));
    EXPECT(contents<float>(values) == contents<float>(twinValues));
  }
  const auto read = make();
  no(dequantize(read.get(), nullptr, 2, MNK_KV_DOMAIN_ORIGINAL));
  no(dequantize(read.get(), nullptr, 1, number<mnk_kv_domain>(2)));
  no(dequantize(nullptr, nullptr, 1, MNK_KV_DOMAIN_ORIGINAL));
}

TEST(CApiCache, NullsAndWrongNumbersAreErrors) {
  QuantizedFixture fixture;
  const auto cache = fixture.make();
  const auto encoder = makeEncoder(fixture.device.get());
  const mnk_tensor* const keys = fixture.keys.get();
  Refusals no;
  no(mnk_cache_save(nullptr, "x", no.out()));
  no(mnk_cache_save(cache.get(), nullptr, no.out()));
  no(mnk_cache_make_from_path(nullptr, "x", 1, 0, no.out()));
  no(mnk_cache_make_from_path(fixture.device.get(), nullptr, 1, 0, no.out()));
  no(mnk_cache_make_key_scales(nullptr, no.out()));
  no(mnk_cache_make_value_scales(nullptr, no.out()));
  no(mnk_encoder_dequantize(nullptr, cache.get(), keys, nullptr, 0, 0, MNK_KV_DOMAIN_ORIGINAL, no.out()));
  no(mnk_encoder_dequantize(encoder.get(), nullptr, keys, nullptr, 0, 0, MNK_KV_DOMAIN_ORIGINAL, no.out()));
  EXPECT_EQ(mnk_cache_bytes_per_token(nullptr), 0u);
  EXPECT_EQ(mnk_cache_bytes_saved(nullptr), 0);
  const mnk_kv_quantized_storage sound = fixture.quantization;
  const auto refuse = [&](auto change) {
    fixture.quantization = sound;
    change(fixture.quantization);
    no(fixture.make(no.out()));
  };
  refuse([](mnk_kv_quantized_storage& q) { q.codec = number<mnk_kv_codec_name>(4); });
  refuse([](mnk_kv_quantized_storage& q) { q.options.key_scale = number<mnk_kv_scale_rule>(3); });
  refuse([](mnk_kv_quantized_storage& q) { q.key_bits = 1; });
}

}  // namespace mnk::test
