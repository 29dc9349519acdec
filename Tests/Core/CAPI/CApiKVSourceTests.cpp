// Views as the sources of KVCacheWrite and KVCacheQuantize through the C API.
#include <functional>
#include <numeric>

#include "Support/CQuantizeScene.hpp"

namespace mnk::test {

namespace {

using Numbers = std::vector<float>;

// Two tokens of two heads, keys of 2 elements and values of 3, with numbers that count the elements of a source.
struct SourceScene {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> fused = counted({2, 14});
  Owned<mnk_tensor> batch = counted({1, 2, 2, 3});
  Owned<mnk_tensor> keyCache = makeTensor(device.get(), MNK_F32, {2, 2, 2});
  Owned<mnk_tensor> valueCache = makeTensor(device.get(), MNK_F32, {2, 2, 3});
  mnk_heads_view keys{}, values{};
  mnk_kv_cache_write op{};

  SourceScene() {
    EXPECT(mnk_heads_view_set_columns(&keys, fused.get(), 3, 2, 2, nullptr));
    EXPECT(mnk_heads_view_set_columns(&values, fused.get(), 7, 2, 3, nullptr));
    op.size = sizeof op;
    op.into.size = sizeof op.into;
    op.into.keys = keyCache.get();
    op.into.values = valueCache.get();
    op.keys_view = &keys;
    op.values_view = &values;
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

TEST(CApiKVSource, ViewsTakeThePlaceOfTensors) {
  SourceScene scene;
  scene.expectStored(kFusedKeys, kFusedValues);
  // What they take the place of is not looked at.
  scene.op.keys = scene.op.values = scene.keyCache.get();
  scene.op.source_layout = MNK_TOKEN_MAJOR;
  scene.expectStored(kFusedKeys, kFusedValues);
}

TEST(CApiKVSource, AViewHasALayoutOfItsOwn) {
  SourceScene scene;
  const Numbers tokenMajor{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11}, headMajor{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  for (const mnk_kv_layout layout : {MNK_HEAD_MAJOR, MNK_TOKEN_MAJOR}) {
    for (const mnk_kv_layout ofTensors : {MNK_HEAD_MAJOR, MNK_TOKEN_MAJOR}) {
      scene.values = {.size = sizeof scene.values, .tensor = scene.batch.get(), .layout = layout};
      scene.op.source_layout = ofTensors;
      scene.expectStored(kFusedKeys, layout == MNK_HEAD_MAJOR ? headMajor : tokenMajor);
    }
  }
  // Keys by a view, values by a tensor.
  scene.op.values_view = nullptr;
  scene.op.values = scene.batch.get();
  scene.op.source_layout = MNK_HEAD_MAJOR;
  scene.expectStored(kFusedKeys, headMajor);
  scene.op.source_layout = MNK_TOKEN_MAJOR;
  scene.expectStored(kFusedKeys, tokenMajor);
}

TEST(CApiKVSource, QuantizationReadsViews) {
  QuantizeScene scene;
  const auto fused = makeTensor(scene.device.get(), MNK_F32, {kTokens, 1 + kHeads * (kHeadDim + kValueHeadDim)});
  const auto keys = sizedVectors(kHeadDim), values = sizedVectors(kValueHeadDim);
  Numbers rows;
  for (uint64_t token = 0; token < kTokens; ++token) {
    constexpr auto ofKeys = static_cast<ptrdiff_t>(kHeads * kHeadDim);
    constexpr auto ofValues = static_cast<ptrdiff_t>(kHeads * kValueHeadDim);
    const auto at = static_cast<ptrdiff_t>(token);
    rows.push_back(1e9f);
    rows.insert(rows.end(), keys.begin() + at * ofKeys, keys.begin() + (at + 1) * ofKeys);
    rows.insert(rows.end(), values.begin() + at * ofValues, values.begin() + (at + 1) * ofValues);
  }
  write(fused, rows.data());
  scene.run();
  const auto stored = [&] {
    return std::tuple(contents<uint8_t>(scene.keyCodes), contents<uint16_t>(scene.keyScales),
                      contents<uint8_t>(scene.valueCodes), contents<uint16_t>(scene.valueScales));
  };
  const auto expected = stored();
  for (const auto* tensor : {&scene.keyCodes, &scene.keyScales, &scene.valueCodes, &scene.valueScales}) {
    QuantizeScene::clear(*tensor);
  }
  mnk_heads_view keysView{}, valuesView{};
  EXPECT(mnk_heads_view_set_columns(&keysView, fused.get(), 1, kHeads, kHeadDim, nullptr));
  EXPECT(mnk_heads_view_set_columns(&valuesView, fused.get(), 1 + kHeads * kHeadDim, kHeads, kValueHeadDim, nullptr));
  scene.op.keys = scene.op.values = nullptr;
  scene.op.keys_view = &keysView;
  scene.op.values_view = &valuesView;
  scene.run();
  EXPECT(stored() == expected);
}

TEST(CApiKVSource, ViewsThatCannotBeReadAreRefused) {
  const auto expectRefused = [](const ExpectedError& expected, const std::function<void(SourceScene&)>& change) {
    SourceScene scene;
    change(scene);
    Caught caught;
    EXPECT(!mnk_kv_cache_write_make_plan(&scene.op, caught.out()));
    caught.expect(expected);
    mnk_kv_cache_quantize quantize{};
    quantize.size = sizeof quantize;
    quantize.keys_view = scene.op.keys_view;
    quantize.values_view = scene.op.values_view;
    EXPECT(!mnk_kv_cache_quantize_make_plan(&quantize, caught.out()));
    caught.expect(expected);
  };
  expectRefused({.op = "C API", .what = "keys is missing"}, [](SourceScene& scene) { scene.op.keys_view = nullptr; });
  expectRefused({.op = "C API", .what = "keys_view->tensor is missing"},
                [](SourceScene& scene) { scene.keys.tensor = nullptr; });
  expectRefused({.op = "C API", .what = "values_view->tensor is missing"},
                [](SourceScene& scene) { scene.values.tensor = nullptr; });
  for (const size_t size : {size_t{0}, sizeof(mnk_heads_view) + 8}) {
    expectRefused({.op = "C API", .what = "mnk_heads_view has the wrong size"},
                  [=](SourceScene& scene) { scene.keys.size = size; });
    expectRefused({.op = "C API", .what = "mnk_heads_view has the wrong size"},
                  [=](SourceScene& scene) { scene.values.size = size; });
  }
  expectRefused({.op = "C API", .what = "not a layout", .got = "2"}, [](SourceScene& scene) {
    scene.keys.has_strides = false;
    scene.keys.layout = number<mnk_kv_layout>(2);
  });
}

}  // namespace mnk::test
