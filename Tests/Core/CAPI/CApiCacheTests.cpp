// Quantized caches and their files through the C API.
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
  mnk_cache_quantization quantization{.size = sizeof quantization, .key_bits = 3, .key_means = means.get()};
  mnk_cache_descriptor descriptor{.size = sizeof descriptor,
                                  .kv_heads = 2,
                                  .head_dim = 32,
                                  .capacity = 4,
                                  .sequences = 2,
                                  .when_full = MNK_RING,
                                  .pinned = 1,
                                  .quantization = &quantization};

  QuantizedFixture() {
    std::vector<float> elements(3 * 2 * 32);
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i % 13) - 6;
    EXPECT(mnk_tensor_write(keys.get(), elements.data(), elements.size() * sizeof(float), nullptr));
  }

  Owned<mnk_cache> make(mnk_error_out error = nullptr) const {
    return {mnk_cache_make(device.get(), &descriptor, error), mnk_cache_release};
  }
  void append(mnk_cache* cache) const {
    const auto encoder = makeEncoder(device.get());
    EXPECT(mnk_encoder_append(encoder.get(), cache, keys.get(), keys.get(), 1, nullptr));
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                     mnk_completion_release);
    EXPECT(mnk_completion_wait(done.get(), nullptr));
  }
};

std::vector<std::byte> bytesOf(Owned<mnk_tensor> tensor) {
  std::vector<std::byte> bytes(mnk_tensor_byte_count(tensor.get()));
  EXPECT(mnk_tensor_read(tensor.get(), bytes.data(), bytes.size(), nullptr));
  return bytes;
}

std::vector<std::byte> cacheBytes(const mnk_cache* cache) {
  std::vector<std::byte> all;
  for (const auto make :
       {mnk_cache_make_keys, mnk_cache_make_key_scales, mnk_cache_make_values, mnk_cache_make_value_scales}) {
    const auto bytes = bytesOf({make(cache, nullptr), mnk_tensor_release});
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

TEST(CApiCache, QuantizedCachesKnowTheirSizes) {
  const QuantizedFixture fixture;
  Caught caught;
  const auto cache = fixture.make(caught.out());
  EXPECT(cache && !caught.isSet());
  EXPECT_EQ(mnk_cache_bytes_per_token(cache.get()), 2u * 2 * (12 + 2));
  EXPECT_EQ(mnk_cache_bytes(cache.get()), 8u * mnk_cache_bytes_per_token(cache.get()));
  EXPECT_EQ(mnk_cache_bytes_saved(cache.get()), int64_t{8 * 2 * 2 * (64 - 14)});
  const Owned<mnk_tensor> codes(mnk_cache_make_keys(cache.get(), nullptr), mnk_tensor_release);
  const Owned<mnk_tensor> scales(mnk_cache_make_value_scales(cache.get(), nullptr), mnk_tensor_release);
  EXPECT(mnk_tensor_dtype(codes.get()) == MNK_U8 && mnk_tensor_extent(codes.get(), 3) == 12);
  EXPECT(mnk_tensor_dtype(scales.get()) == MNK_F16 && mnk_tensor_rank(scales.get()) == 3);
}

TEST(CApiCache, ALatentDescriptorComesBackToo) {
  QuantizedFixture fixture;
  fixture.descriptor.quantization = nullptr;
  fixture.descriptor.dtype = MNK_F16;
  fixture.descriptor.head_dim = 64;
  fixture.descriptor.latent_dim = 512;
  const auto cache = fixture.make();
  const mnk_cache_descriptor made = mnk_cache_get_descriptor(cache.get());
  EXPECT(made.latent_dim == 512 && made.value_head_dim == 512 && made.head_dim == 64);
  EXPECT_EQ(mnk_cache_bytes_per_token(cache.get()), 2u * (512 + 64) * 2);
}

TEST(CApiCache, KeysOrValuesAloneAreQuantized) {
  QuantizedFixture fixture;
  fixture.quantization = {
      .size = sizeof fixture.quantization, .value_bits = 5, .planes = MNK_QUANTIZED_VALUES};  // no bits for keys
  fixture.descriptor.dtype = MNK_BF16;
  Caught caught;
  const auto cache = fixture.make(caught.out());
  EXPECT(cache && !caught.isSet());
  const mnk_cache_descriptor made = mnk_cache_get_descriptor(cache.get());
  EXPECT(made.dtype == MNK_BF16 && made.quantization && made.quantization->planes == MNK_QUANTIZED_VALUES);
  EXPECT(made.quantization->key_bits == 0 && made.quantization->value_bits == 5);
  EXPECT_EQ(mnk_cache_bytes_per_token(cache.get()), 2u * (64 + 20 + 2));
  const Owned<mnk_tensor> keys(mnk_cache_make_keys(cache.get(), nullptr), mnk_tensor_release);
  EXPECT(mnk_tensor_dtype(keys.get()) == MNK_BF16 && mnk_tensor_extent(keys.get(), 3) == 32);
  const Owned<mnk_tensor> scales(mnk_cache_make_value_scales(cache.get(), nullptr), mnk_tensor_release);
  EXPECT(mnk_tensor_dtype(scales.get()) == MNK_F16);
  EXPECT(!mnk_cache_make_key_scales(cache.get(), caught.out()));
  caught.expect({.op = "AttentionCache", .what = "dense vectors have no scales", .got = "keys of bf16"});
  fixture.quantization.planes = number<mnk_quantized_planes>(3);
  EXPECT(!fixture.make(caught.out()));
  caught.expect({.op = "C API",
                 .what = "the number is not a choice of what is quantized",
                 .expected = "MNK_QUANTIZED_BOTH to MNK_QUANTIZED_VALUES"});
}

TEST(CApiCache, ADenseCacheIsMadeIntoAQuantizedOne) {
  QuantizedFixture fixture;
  const auto expected = fixture.make();
  fixture.append(expected.get());
  fixture.descriptor.quantization = nullptr;
  fixture.descriptor.dtype = MNK_F32;
  const auto dense = fixture.make();
  fixture.append(dense.get());
  Caught caught;
  const auto encoder = makeEncoder(fixture.device.get());
  EXPECT(!mnk_encoder_make_quantized_cache(encoder.get(), dense.get(), nullptr, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_cache_quantization is missing"});
  EXPECT(!mnk_encoder_make_quantized_cache(nullptr, dense.get(), &fixture.quantization, caught.out()));
  caught.expect({.op = "C API", .what = "encoder is missing"});
  EXPECT(!mnk_encoder_make_quantized_cache(encoder.get(), expected.get(), &fixture.quantization, caught.out()));
  caught.expect({.op = "AttentionCache.quantized", .what = "only a dense cache can be quantized"});
  const Owned<mnk_cache> made(
      mnk_encoder_make_quantized_cache(encoder.get(), dense.get(), &fixture.quantization, caught.out()),
      mnk_cache_release);
  EXPECT(made && !caught.isSet());
  EXPECT_EQ(mnk_cache_next_position(made.get(), 1), 0u);
  const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                   mnk_completion_release);
  EXPECT(mnk_completion_wait(done.get(), nullptr));
  EXPECT_EQ(mnk_cache_next_position(made.get(), 1), 3u);
  EXPECT(cacheBytes(made.get()) == cacheBytes(expected.get()));
}

TEST(CApiCache, ADescriptorComesBackWithoutDefaults) {
  QuantizedFixture fixture;
  fixture.quantization.options = {.candidates = 17, .value_scale = MNK_SCALE_UNBIASED};
  const auto cache = fixture.make();
  const mnk_cache_descriptor made = mnk_cache_get_descriptor(cache.get());
  EXPECT_EQ(made.size, sizeof made);
  EXPECT(made.kv_heads == 2 && made.head_dim == 32 && made.value_head_dim == 32);
  EXPECT(made.capacity == 4 && made.sequences == 2 && made.when_full == MNK_RING && made.pinned == 1);
  if (!made.quantization) return fail(__FILE__, __LINE__, "no quantization");
  const mnk_cache_quantization& quantization = *made.quantization;
  EXPECT_EQ(quantization.size, sizeof quantization);
  EXPECT(quantization.codec == MNK_TURBO && quantization.key_bits == 3 && quantization.value_bits == 3);
  EXPECT(quantization.scale_factor == 1 && quantization.options.candidates == 17);
  EXPECT(quantization.options.key_scale == MNK_SCALE_UNBIASED);
  EXPECT(quantization.options.value_scale == MNK_SCALE_UNBIASED);
  EXPECT(quantization.options.non_finite == MNK_NON_FINITE_ZERO);
  EXPECT(quantization.key_means && quantization.key_means != fixture.means.get());
  EXPECT(!quantization.value_means && !quantization.key_channel_scales);
  // Another cache can be made of it.
  const Owned<mnk_cache> again(mnk_cache_make(fixture.device.get(), &made, nullptr), mnk_cache_release);
  EXPECT_EQ(mnk_cache_bytes(again.get()), mnk_cache_bytes(cache.get()));

  fixture.descriptor.quantization = nullptr;
  fixture.descriptor.dtype = MNK_BF16;
  const auto dense = fixture.make();
  EXPECT(!mnk_cache_get_descriptor(dense.get()).quantization);
  EXPECT(mnk_cache_get_descriptor(dense.get()).dtype == MNK_BF16);
  EXPECT_EQ(mnk_cache_get_descriptor(nullptr).size, sizeof made);
  EXPECT_EQ(mnk_cache_get_descriptor(nullptr).kv_heads, 0u);
  Caught caught;
  EXPECT(!mnk_cache_make_key_scales(dense.get(), caught.out()));
  caught.expect({.op = "AttentionCache", .what = "a dense cache has no scales", .expected = "a quantized cache"});
  EXPECT(!mnk_cache_make_value_scales(dense.get(), caught.out()));
  caught.expect({.op = "AttentionCache", .what = "a dense cache has no scales"});
}

TEST(CApiCache, SavedCachesComeBack) {
  const QuantizedFixture fixture;
  const CacheFolder folder;
  const auto cache = fixture.make();
  fixture.append(cache.get());
  fixture.append(cache.get());
  Caught caught;
  EXPECT(mnk_cache_save(cache.get(), folder.path().c_str(), caught.out()));
  const Owned<mnk_cache> loaded(
      mnk_cache_make_from_path(fixture.device.get(), folder.path().c_str(), mnk_cache_bytes(cache.get()), caught.out()),
      mnk_cache_release);
  EXPECT(loaded && !caught.isSet());
  EXPECT_EQ(mnk_cache_next_position(loaded.get(), 1), 6u);
  EXPECT_EQ(mnk_cache_count(loaded.get(), 1), 4u);
  EXPECT(cacheBytes(loaded.get()) == cacheBytes(cache.get()));
  fixture.append(cache.get());
  fixture.append(loaded.get());
  EXPECT(cacheBytes(loaded.get()) == cacheBytes(cache.get()));
  EXPECT(!mnk_cache_make_from_path(fixture.device.get(), folder.path().c_str(), 1, caught.out()));
  caught.expect({.op = "AttentionCache", .what = "larger than allowed"});
  EXPECT(!mnk_cache_make_from_path(fixture.device.get(), folder.path("none").c_str(), kPlenty, caught.out()));
  caught.expect({.op = "AttentionCache", .what = "there is no such file"});
  EXPECT(!mnk_cache_save(cache.get(), folder.path("none/cache").c_str(), caught.out()));
  caught.expect({.op = "AttentionCache", .what = "no file can be made beside the path"});
}

TEST(CApiCache, DequantizesPositionsThatAreHeld) {
  const QuantizedFixture fixture;
  const auto cache = fixture.make();
  fixture.append(cache.get());
  const auto read = makeTensor(fixture.device.get(), MNK_F32, {2, 2, 32});
  const auto encoder = makeEncoder(fixture.device.get());
  Caught caught;
  const auto dequantize = [&](const mnk_tensor* keys, uint64_t position, mnk_kv_domain domain) {
    return mnk_encoder_dequantize(encoder.get(), cache.get(), keys, nullptr, position, 1, domain, caught.out());
  };
  EXPECT(dequantize(read.get(), 1, MNK_ORIGINAL_DOMAIN));
  EXPECT(!dequantize(read.get(), 2, MNK_ORIGINAL_DOMAIN));
  caught.expect({.op = "AttentionCache", .what = "the cache does not hold these positions"});
  EXPECT(!dequantize(read.get(), 1, number<mnk_kv_domain>(2)));
  caught.expect({.op = "C API", .what = "the number is not a domain", .got = "2"});
  EXPECT(!dequantize(nullptr, 1, MNK_ORIGINAL_DOMAIN));
  caught.expect({.op = "AttentionCache.dequantize"});
  const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                   mnk_completion_release);
  EXPECT(mnk_completion_wait(done.get(), nullptr));
  std::vector<float> got(2 * 2 * 32);
  EXPECT(mnk_tensor_read(read.get(), got.data(), got.size() * sizeof(float), nullptr));
  double product = 0, ofGot = 0, ofExpected = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double expected = static_cast<double>((i + 2 * 32) % 13) - 6;
    product += got[i] * expected, ofGot += got[i] * got[i], ofExpected += expected * expected;
  }
  EXPECT(product * product > 0.9 * ofGot * ofExpected);  // three bits keep a cosine of 0.98
}

TEST(CApiCache, NullsAndWrongNumbersAreErrors) {
  QuantizedFixture fixture;
  const auto cache = fixture.make();
  const auto encoder = makeEncoder(fixture.device.get());
  Caught caught;
  const ExpectedError null{.op = "C API", .what = "is missing", .got = "NULL"};
  EXPECT(!mnk_cache_save(nullptr, "x", caught.out()));
  caught.expect(null);
  EXPECT(!mnk_cache_save(cache.get(), nullptr, caught.out()));
  caught.expect(null);
  EXPECT(!mnk_cache_make_from_path(nullptr, "x", 1, caught.out()));
  caught.expect(null);
  EXPECT(!mnk_cache_make_from_path(fixture.device.get(), nullptr, 1, caught.out()));
  caught.expect(null);
  EXPECT(!mnk_cache_make_key_scales(nullptr, caught.out()));
  caught.expect(null);
  EXPECT(!mnk_cache_make_value_scales(nullptr, caught.out()));
  caught.expect(null);
  EXPECT(!mnk_encoder_dequantize(nullptr, cache.get(), fixture.keys.get(), nullptr, 0, 0, MNK_ORIGINAL_DOMAIN,
                                 caught.out()));
  caught.expect(null);
  EXPECT(!mnk_encoder_dequantize(encoder.get(), nullptr, fixture.keys.get(), nullptr, 0, 0, MNK_ORIGINAL_DOMAIN,
                                 caught.out()));
  caught.expect(null);
  EXPECT_EQ(mnk_cache_bytes_per_token(nullptr), 0u);
  EXPECT_EQ(mnk_cache_bytes_saved(nullptr), 0);

  fixture.quantization.size -= 1;
  EXPECT(!fixture.make(caught.out()));
  caught.expect({.op = "C API", .what = "mnk_cache_quantization has the wrong size"});
  fixture.quantization.size += 1;
  fixture.quantization.codec = number<mnk_kv_codec_name>(2);
  EXPECT(!fixture.make(caught.out()));
  caught.expect({.op = "C API", .what = "the number is not a codec"});
  fixture.quantization.codec = MNK_TURBO;
  fixture.quantization.options.key_scale = number<mnk_kv_scale_rule>(3);
  EXPECT(!fixture.make(caught.out()));
  caught.expect({.op = "C API", .what = "the number is not a rule for scales"});
  fixture.quantization.options.key_scale = MNK_SCALE_DEFAULT;
  fixture.quantization.key_bits = 1;
  EXPECT(!fixture.make(caught.out()));
  caught.expect({.op = "AttentionCache", .what = "the codec cannot code such vectors"});
}

TEST(CApiCache, AStepToAppendAndAttendListsItsSequences) {
  QuantizedFixture fixture;
  const auto cache = fixture.make();
  const auto encoder = makeEncoder(fixture.device.get());
  const auto results = makeTensor(fixture.device.get(), MNK_F32, {3, 2, 32});
  const mnk_attention_results into{.size = sizeof into, .into = results.get()};
  const mnk_heads_view view{.size = sizeof view, .tensor = fixture.keys.get(), .layout = MNK_TOKEN_MAJOR};
  const uint32_t sequences[] = {1, 0}, rowCounts[] = {2, 1};
  mnk_cache_step step{.size = sizeof step,
                      .queries = view,
                      .keys = view,
                      .values = view,
                      .sequences = sequences,
                      .sequence_count = 2,
                      .results = &into};
  Caught caught;
  EXPECT(!mnk_encoder_append_and_attend(encoder.get(), cache.get(), &step, caught.out()));
  caught.expect({.op = "AttentionCache.appendAndAttend",
                 .what = "the rows do not match the listed sequences",
                 .got = "3 rows",
                 .expected = "2 rows, or as many for each of 2 sequences"});
  step.sequence_count = 0;
  EXPECT(!mnk_encoder_append_and_attend(encoder.get(), cache.get(), &step, caught.out()));
  caught.expect({.op = "AttentionCache.appendAndAttend",
                 .what = "the step has no sequence",
                 .got = "an empty list of sequences",
                 .expected = "at least one sequence",
                 .fix = "List the sequences that the tokens continue."});
  step.sequence_count = 2;
  step.row_counts = rowCounts;
  EXPECT(mnk_encoder_append_and_attend(encoder.get(), cache.get(), &step, caught.out()));
  const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                   mnk_completion_release);
  EXPECT(mnk_completion_wait(done.get(), nullptr));
  EXPECT_EQ(mnk_cache_next_position(cache.get(), 1), 2u);
  EXPECT_EQ(mnk_cache_next_position(cache.get(), 0), 1u);
}

}  // namespace mnk::test
