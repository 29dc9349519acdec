// Preparing a device through the C API.
#include "CApiHarness.hpp"
#include "Cache/CacheFileFixture.hpp"

namespace mnk::test {

namespace {

struct Fixture {
  mnk_attention_cache_descriptor descriptor{
      .kv_heads = 2, .head_dim = 64, .capacity = 256, .sequences = 1, .dtype = MNK_F16};
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_cache> cache{mnk_cache_make(device.get(), &descriptor, nullptr), mnk_cache_release};
  const mnk_cache* caches[1] = {cache.get()};
  mnk_preparation preparation{.caches = caches, .cache_count = 1, .query_heads = 8, .dtype = MNK_F16};
};

}  // namespace

TEST(CApiPrepare, ReportsWhatIsReady) {
  const CacheFolder folder;
  const std::string file = folder.path("tuning");
  Fixture fixture;
  const mnk_rotary_embedding rotary{.layout = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, .base = 10000, .scale = 1};
  fixture.preparation.has_rotary = true;
  fixture.preparation.rotary = rotary;
  fixture.preparation.options = {.scale = 0.5f};
  fixture.preparation.rows = 4;
  mnk_preparation_summary summary{};
  EXPECT(mnk_device_prepare(fixture.device.get(), &fixture.preparation, &summary, nullptr));
  EXPECT(summary.kernels >= 3);
  EXPECT(summary.measured == 0 && summary.known == 0 && !summary.is_kept);
  fixture.preparation.tuning = MNK_TUNING_MEASURE;
  fixture.preparation.tuning_file = file.c_str();
  EXPECT(mnk_device_prepare(fixture.device.get(), &fixture.preparation, &summary, nullptr));
  EXPECT(summary.measured + summary.known == 2 && summary.is_kept);
  EXPECT(mnk_device_prepare(fixture.device.get(), &fixture.preparation, nullptr, nullptr));
}

TEST(CApiPrepare, ASummaryIsOneLine) {
  const mnk_preparation_summary summary{.kernels = 12, .measured = 1, .known = 3, .seconds = 0.42};
  char* text = mnk_preparation_summary_copy_text(&summary);
  EXPECT_EQ(std::string_view(text ? text : ""), "12 kernels, 1 shape measured, 3 known, 0.4 s");
  mnk_text_release(text);
  EXPECT(!mnk_preparation_summary_copy_text(nullptr));
}

TEST(CApiPrepare, RefusesWhatItCannotRead) {
  Fixture fixture;
  Refusals no;
  const auto refuse = [&](auto change) {
    mnk_preparation preparation = fixture.preparation;
    change(preparation);
    no(mnk_device_prepare(fixture.device.get(), &preparation, nullptr, no.out()));
  };
  const mnk_cache* none[1] = {nullptr};
  const mnk_rotary_embedding rotary{.pairing = number<mnk_rotary_embedding_pairing>(9)};
  refuse([](auto& p) { p.caches = nullptr; });
  refuse([&](auto& p) { p.caches = none; });
  refuse([](auto& p) { p.cache_count = 5000; });
  refuse([](auto& p) { p.cache_count = 0; });
  refuse([](auto& p) { p.dtype = number<mnk_dtype>(99); });
  refuse([](auto& p) { p.tuning = number<mnk_tuning>(2); });
  refuse([](auto& p) { p.rows = 257; });
  refuse([&](auto& p) { p.rotary = rotary; });
  refuse([&](auto& p) { p.has_rotary = true, p.rotary = rotary; });
  refuse([&](auto& p) { p.options.kernel = number<mnk_attention_options_kernel>(9); });
  no(mnk_device_prepare(nullptr, &fixture.preparation, nullptr, no.out()));
  no(mnk_device_prepare(fixture.device.get(), nullptr, nullptr, no.out()));
}

}  // namespace mnk::test
