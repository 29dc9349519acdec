// Views as the sources of KVCacheWrite and KVCacheQuantize through the C API.
#include <numeric>

#include "CApiHarness.hpp"

namespace mnk::test {

namespace {

using Numbers = std::vector<float>;

// Two tokens of two heads, keys of 2 elements and values of 3, with numbers that count the elements of a source.
struct SourceFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> fused = counted({2, 14});
  Owned<mnk_tensor> batch = counted({1, 2, 2, 3});
  Owned<mnk_tensor> keyCache = makeTensor(device.get(), MNK_F32, {2, 2, 2});
  Owned<mnk_tensor> valueCache = makeTensor(device.get(), MNK_F32, {2, 2, 3});
  mnk_kv_cache_write op{};

  SourceFixture() {
    EXPECT(mnk_heads_view_set_columns(&op.keys, fused.get(), 3, 2, 2, nullptr));
    EXPECT(mnk_heads_view_set_columns(&op.values, fused.get(), 7, 2, 3, nullptr));
    op.into.keys = keyCache.get();
    op.into.values = valueCache.get();
  }

  Owned<mnk_tensor> counted(const std::vector<uint64_t>& shape) const {
    Owned<mnk_tensor> tensor = makeTensor(device.get(), MNK_F32, shape);
    Numbers numbers(mnk_tensor_byte_count(tensor.get()) / sizeof(float));
    std::iota(numbers.begin(), numbers.end(), 0.0f);
    write(tensor, numbers.data());
    return tensor;
  }

  void expectStored(const Numbers& expectedKeys, const Numbers& expectedValues) const {
    runOp(device.get(), op, mnk_encoder_kv_cache_write);
    EXPECT_EQ(contents<float>(keyCache), expectedKeys);
    EXPECT_EQ(contents<float>(valueCache), expectedValues);
  }
};

const Numbers kFusedKeys{3, 4, 17, 18, 5, 6, 19, 20};
const Numbers kFusedValues{7, 8, 9, 21, 22, 23, 10, 11, 12, 24, 25, 26};

}  // namespace

TEST(CApiKVSource, AViewHasALayoutOfItsOwn) {
  SourceFixture fixture;
  fixture.expectStored(kFusedKeys, kFusedValues);
  const Numbers tokenMajor{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11}, headMajor{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const mnk_kv_layout layout : {MNK_KV_LAYOUT_DEFAULT, MNK_KV_LAYOUT_HEAD_MAJOR, MNK_KV_LAYOUT_TOKEN_MAJOR}) {
    for (const mnk_kv_layout ofBoth : {MNK_KV_LAYOUT_DEFAULT, MNK_KV_LAYOUT_HEAD_MAJOR, MNK_KV_LAYOUT_TOKEN_MAJOR}) {
      fixture.op.values = {.tensor = fixture.batch.get(), .layout = layout};
      fixture.op.source_layout = ofBoth;
      const bool isHeadMajor = layout == MNK_KV_LAYOUT_HEAD_MAJOR || ofBoth == MNK_KV_LAYOUT_HEAD_MAJOR;
      fixture.expectStored(kFusedKeys, isHeadMajor ? headMajor : tokenMajor);
    }
  }
}

TEST(CApiKVSource, ViewsThatCannotBeReadAreRefused) {
  Refusals no;
  const auto refuse = [&](auto change) {
    SourceFixture fixture;
    change(fixture);
    no(mnk_kv_cache_write_make_plan(&fixture.op, no.out()));
    const mnk_kv_cache_quantize quantize{.keys = fixture.op.keys, .values = fixture.op.values};
    no(mnk_kv_cache_quantize_make_plan(&quantize, no.out()));
  };
  refuse([](SourceFixture& fixture) { fixture.op.keys = {}; });
  refuse([](SourceFixture& fixture) { fixture.op.keys.tensor = nullptr; });
  refuse([](SourceFixture& fixture) { fixture.op.keys.has_strides = false; });
  refuse([](SourceFixture& fixture) { fixture.op.values.tensor = nullptr; });
  refuse([](SourceFixture& fixture) {
    fixture.op.keys = {.tensor = fixture.op.keys.tensor, .layout = number<mnk_kv_layout>(3)};
  });
}

}  // namespace mnk::test
