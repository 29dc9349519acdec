// Quantized caches and their files through the C API.
#include "CAPI/Generated/FieldCases.hpp"
#include "CAPI/Handles.hpp"
#include "CApiHarness.hpp"
#include "Cache/CacheFileFixture.hpp"

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

void expectDescriptor(const mnk_cache* cache) {
  AttentionCacheDescriptor read;
  REQUIRE(c::read(read, mnk_cache_get_descriptor(cache), {}));
  EXPECT(same(read, cache->cache.descriptor()));
}

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

TEST(CApiCache, ADenseCacheIsMadeIntoAQuantizedOne) {
  QuantizedFixture fixture;
  const auto expected = fixture.make(), dense = fixture.makeDense(MNK_F32);
  fixture.append(expected.get());
  fixture.append(dense.get());
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  no(mnk_encoder_make_quantized_cache(encoder.get(), dense.get(), nullptr, no.out()));
  no(mnk_encoder_make_quantized_cache(nullptr, dense.get(), &fixture.quantization, no.out()));
  const Owned<mnk_cache> made(
      mnk_encoder_make_quantized_cache(encoder.get(), dense.get(), &fixture.quantization, nullptr), mnk_cache_release);
  EXPECT_EQ(nextPosition(made.get(), 1), 0u);
  commit(encoder);
  EXPECT_EQ(nextPosition(made.get(), 1), 3u);
  EXPECT(cacheBytes(made.get()) == cacheBytes(expected.get()));
}

TEST(CApiCache, CachesGrowMoveAndComeBackFromFiles) {
  QuantizedFixture fixture;
  const auto cache = fixture.make();
  fixture.append(cache.get());
  fixture.append(cache.get());  // which wraps
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  no(mnk_encoder_make_grown_cache(nullptr, cache.get(), 9, no.out()));
  no(mnk_encoder_make_grown_cache(encoder.get(), nullptr, 9, no.out()));
  const Owned<mnk_cache> larger(mnk_encoder_make_grown_cache(encoder.get(), cache.get(), 9, nullptr),
                                mnk_cache_release);
  EXPECT_EQ(nextPosition(larger.get(), 1), 0u);
  no(mnk_encoder_copy_sequence_to_cache(nullptr, cache.get(), 1, larger.get(), 0, no.out()));
  no(mnk_encoder_copy_sequence_to_cache(encoder.get(), nullptr, 1, larger.get(), 0, no.out()));
  no(mnk_encoder_copy_sequence_to_cache(encoder.get(), cache.get(), 1, nullptr, 0, no.out()));
  EXPECT(mnk_encoder_copy_sequence_to_cache(encoder.get(), cache.get(), 1, larger.get(), 0, nullptr));
  commit(encoder);
  EXPECT_EQ(nextPosition(larger.get(), 0), 6u);
  EXPECT_EQ(sequenceOf(larger.get(), 0).count, 4u);
  const CacheFolder folder;
  const std::string path = folder.path();
  EXPECT(mnk_cache_save(cache.get(), path.c_str(), nullptr));
  const auto load = [&](uint64_t most, uint32_t capacity, mnk_error_out error = nullptr) {
    return Owned<mnk_cache>(mnk_cache_make_from_path(fixture.device.get(), path.c_str(), most, capacity, error),
                            mnk_cache_release);
  };
  const auto loaded = load(mnk_cache_byte_count(cache.get()), 0), grown = load(kPlenty, 9);
  EXPECT(cacheBytes(loaded.get()) == cacheBytes(cache.get()));
  for (const mnk_cache* each : {larger.get(), loaded.get(), grown.get()}) {
    EXPECT_EQ(mnk_cache_get_descriptor(each).capacity, each == loaded.get() ? 4u : 9u);
    EXPECT_EQ(nextPosition(each, 1), 6u);
    EXPECT_EQ(sequenceOf(each, 1).count, 4u);
  }
  Caught caught;
  EXPECT(!load(1, 0, caught.out()));
  caught.expect({.op = "AttentionCache", .what = "larger than allowed"});
}

TEST(CApiCache, ADescriptorComesBackWithoutDefaults) {
  QuantizedFixture fixture;
  fixture.quantization.options = {.candidates = 17, .value_scale = MNK_KV_SCALE_RULE_UNBIASED};
  const auto cache = fixture.make();
  expectDescriptor(cache.get());
  const mnk_attention_cache_descriptor made = mnk_cache_get_descriptor(cache.get());
  EXPECT(made.value_head_dim == 32 && made.quantized.options.key_scale == MNK_KV_SCALE_RULE_UNBIASED);
  EXPECT(made.quantized.key_means && made.quantized.key_means != fixture.means.get());
  EXPECT(!made.quantized.value_means && !made.quantized.key_channel_scales);
  // Another cache can be made of it.
  const Owned<mnk_cache> again(mnk_cache_make(fixture.device.get(), &made, nullptr), mnk_cache_release);
  EXPECT_EQ(mnk_cache_byte_count(again.get()), cache->cache.byteCount());
  EXPECT_EQ(mnk_cache_bytes_per_token(cache.get()), cache->cache.bytesPerToken());
  EXPECT_EQ(mnk_cache_bytes_saved(cache.get()), cache->cache.bytesSaved());

  fixture.quantization = {.value_bits = 5, .planes = MNK_KV_QUANTIZED_PLANES_VALUES};  // no bits for keys
  fixture.descriptor.dtype = MNK_BF16;
  const auto ofValues = fixture.make();
  fixture.descriptor.head_dim = 64;
  fixture.descriptor.latent_dim = 512;
  const auto dense = fixture.makeDense(MNK_F16);
  Refusals no;
  for (const mnk_cache* each : {ofValues.get(), dense.get()}) {
    expectDescriptor(each);
    no(mnk_cache_make_key_scales(each, no.out()));
  }
  no(mnk_cache_make_value_scales(dense.get(), no.out()));
  EXPECT_EQ(mnk_cache_get_descriptor(nullptr).kv_heads, 0u);
}

TEST(CApiCache, DequantizesPositionsThatAreHeld) {
  const QuantizedFixture fixture;
  const auto cache = fixture.make();
  fixture.append(cache.get());
  const auto make = [&] { return makeTensor(fixture.device.get(), MNK_F32, {2, 2, 32}); };
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
  no(mnk_encoder_dequantize(encoder.get(), cache.get(), keys, nullptr, 1, 1, number<mnk_kv_domain>(2), no.out()));
  EXPECT_EQ(mnk_cache_bytes_per_token(nullptr), 0u);
  EXPECT_EQ(mnk_cache_bytes_saved(nullptr), 0);
  fixture.quantization.key_bits = 1;
  no(fixture.make(no.out()));
}

}  // namespace mnk::test
