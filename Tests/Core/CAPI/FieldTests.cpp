// Each field that the API's description has: from C++ to C and back.
#include "CAPI/Generated/FieldCases.hpp"
#include "CApiHarness.hpp"
#include "CStructs.hpp"

namespace mnk::test {

namespace {

struct FieldFixture {
  Tensor tensor = make(), other = make();
  CStructs structs = {};

  static Tensor make() {
    static const auto device = REQUIRE(Device::makeDefault());
    return REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({1}))));
  }
};

}  // namespace

TEST(CFields, EachReachesTheCore) {
  FieldFixture fixture;
  forEachField(fixture.tensor, fixture.other, [&](std::string_view name, const auto& core) {
    const Context context(std::string{name});
    std::remove_cvref_t<decltype(core)> read;
    REQUIRE(c::read(read, fixture.structs.of(core), {nullptr, name}));
    EXPECT(same(read, core));
  });
}

TEST(CFields, ZeroesAreTheDefaults) {
  FieldFixture fixture;
  forEachZero(fixture.tensor, fixture.structs, [](std::string_view name, const auto& core, const auto& inC) {
    const Context context(std::string{name});
    std::remove_cvref_t<decltype(core)> read;
    REQUIRE(c::read(read, inC, {nullptr, name}));
    EXPECT(same(read, core));
  });
}

TEST(CFields, WrongValuesAreErrors) {
  FieldFixture fixture;
  forEachWrong(fixture.tensor, fixture.other, fixture.structs,
               [](std::string_view name, std::string_view error, const auto& core, const auto& inC) {
                 const Context context(std::string{name});
                 std::remove_cvref_t<decltype(core)> read;
                 EXPECT_ERROR(c::read(read, inC, {nullptr, name}), {.what = error});
               });
}

// What is written by hand, because the other tests take both sides from the description.
TEST(CFields, FieldsHaveTheMeaningOfTheirNames) {
  FieldFixture fixture;
  AttentionOptions options;
  const mnk_attention_options inC{.scale = 0.5f, .is_bidirectional = true, .window = 3, .splits = 4};
  REQUIRE(c::read(options, inC, {nullptr, "options"}));
  EXPECT(same(options, {.scale = 0.5f, .isCausal = false, .window = 3, .splits = 4}));
  HeadsView::Strides strides;
  REQUIRE(c::read(strides, {.tokens = 2, .heads = 3, .head_dim = 4, .offset = 5, .token_stride = 7, .head_stride = 8},
                  {nullptr, "strides"}));
  EXPECT(same(strides,
              {.sequences = 1, .tokens = 2, .heads = 3, .headDim = 4, .offset = 5, .tokenStride = 7, .headStride = 8}));
  RotaryEmbedding::YaRN yarn;
  REQUIRE(c::read(yarn, {.original_context = 9, .beta_fast = 32, .beta_slow = 1, .keeps_fractions = true},
                  {nullptr, "yarn"}));
  KVCacheWrite write;
  mnk_tensor keys{fixture.tensor}, cache{fixture.other};
  REQUIRE(c::read(write, {.keys = {.tensor = &keys}, .source_offset = 2, .into = {.keys = &cache}, .position = 5}, {}));
  EXPECT(same(write,
              {.keys = keys.tensor, .sourceOffset = 2, .into = {.keys = cache.tensor}, .sequence = 0, .position = 5}));
  EXPECT(same(yarn, {.originalContext = 9, .extensionFactor = 0, .attentionFactor = 0, .roundsCorners = false}));
}

}  // namespace mnk::test
