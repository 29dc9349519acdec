// MultiRoPE through the C API: invalid descriptors are refused. CApiBindingTests.cpp has the rest.
#include "CApiHarness.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

// Two sequences of three tokens; four heads and two, of eight elements, f32.
struct RopeFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> queries = makeTensor(device.get(), MNK_F32, {2, 3, 4, 8});
  Owned<mnk_tensor> keys = makeTensor(device.get(), MNK_F32, {2, 3, 2, 8});
  mnk_multi_rope rope{};

  RopeFixture() {
    rope.queries = view(queries.get());
    rope.rotary.layout = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT;
    rope.rotary.base = 100;
    rope.rotary.scale = 1;
  }

  static mnk_heads_view view(mnk_tensor* tensor) {
    mnk_heads_view view{};
    view.tensor = tensor;
    view.layout = MNK_KV_LAYOUT_TOKEN_MAJOR;
    return view;
  }
};

}  // namespace

TEST(CApiMultiRoPE, ColumnsAreAViewOfAFusedProjection) {
  // The last two of four heads, as columns of [sequences, tokens, width].
  RopeFixture fixture;
  const uint64_t shape[] = {2, 3, 32};
  const Owned<mnk_tensor> fused(mnk_tensor_make_reshaped(fixture.queries.get(), shape, 3, nullptr), mnk_tensor_release);
  Refusals no;
  const mnk_heads_view_strides& view = fixture.rope.queries.strides;
  EXPECT(mnk_heads_view_set_columns(&fixture.rope.queries, fused.get(), 16, 2, 8, no.out()));
  EXPECT(fixture.rope.queries.tensor == fused.get() && fixture.rope.queries.has_strides);
  const std::vector<uint64_t> got{view.sequences, view.tokens,          view.heads,        view.head_dim,
                                  view.offset,    view.sequence_stride, view.token_stride, view.head_stride};
  EXPECT_EQ(fmt::format("{}", fmt::join(got, " ")), "2 3 2 8 16 96 32 8");
  no(mnk_heads_view_set_columns(&fixture.rope.queries, fixture.queries.get(), 0, 1, 8, no.out()));
  no(mnk_heads_view_set_columns(nullptr, fused.get(), 0, 1, 8, no.out()));
  no(mnk_heads_view_set_columns(&fixture.rope.queries, nullptr, 0, 1, 8, no.out()));
}

TEST(CApiMultiRoPE, WhatIsNoDescriptorIsRefused) {
  RopeFixture fixture;
  fixture.rope.keys = RopeFixture::view(fixture.keys.get());
  const mnk_multi_rope sound = fixture.rope;
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  const auto refuse = [&](auto change) {
    fixture.rope = sound;
    change(fixture.rope);
    no(mnk_multi_rope_make_plan(&fixture.rope, no.out()));
    no(mnk_encoder_multi_rope(encoder.get(), &fixture.rope, no.out()));
  };
  static const int32_t one = 1;
  static const float factor = 1;
  refuse([](mnk_multi_rope& rope) { rope.queries.tensor = nullptr; });
  refuse([](mnk_multi_rope& rope) { rope.positions.list_count = 6; });
  refuse([](mnk_multi_rope& rope) { rope.positions.list_axes = 3; });
  refuse([](mnk_multi_rope& rope) { rope.positions.first = 3; });
  refuse([](mnk_multi_rope& rope) { rope.positions.sequence_count = 1; });
  refuse([](mnk_multi_rope& rope) { rope.offsets.list_count = 2; });
  refuse([&](mnk_multi_rope& rope) { rope.offsets = {nullptr, 2, fixture.keys.get()}; });
  refuse([&](mnk_multi_rope& rope) { rope.offsets = {&one, 1, fixture.keys.get()}; });
  refuse([](mnk_multi_rope& rope) { rope.rotary.frequency_factor_count = 4; });
  refuse([](mnk_multi_rope& rope) { rope.rotary.frequency_factors = &factor; });
  refuse([](mnk_multi_rope& rope) { rope.rotary.yarn.beta_fast = 32; });
  refuse([](mnk_multi_rope& rope) { rope.queries.strides.head_stride = 8; });
  refuse([](mnk_multi_rope& rope) { rope.rotated_keys.has_strides = true; });
  refuse([](mnk_multi_rope& rope) { rope.positions = {.has_first = true, .first = 3, .list = &one, .list_count = 1}; });
  refuse([](mnk_multi_rope& rope) { rope.queries.layout = number<mnk_kv_layout>(3); });
  refuse([](mnk_multi_rope& rope) { rope.rotary.layout = number<mnk_rotary_embedding_layout>(7); });
  refuse([](mnk_multi_rope& rope) { rope.rotary.pairing = number<mnk_rotary_embedding_pairing>(3); });
  refuse([](mnk_multi_rope& rope) { rope.rotary.other_axis = number<mnk_rotary_embedding_other_axis>(2); });
  // Counts that no list can have, so that reading it would end the process.
  refuse([](mnk_multi_rope& rope) { rope.positions = {.list = &one, .list_count = SIZE_MAX}; });
  refuse([](mnk_multi_rope& rope) { rope.offsets = {.list = &one, .list_count = 1025}; });
  refuse([](mnk_multi_rope& rope) {
    rope.rotary.frequency_factors = &factor;
    rope.rotary.frequency_factor_count = SIZE_MAX;
  });
  refuse([](mnk_multi_rope& rope) { rope.rotary.scale = 0; });
  no(mnk_encoder_multi_rope(nullptr, &sound, no.out()));
  no(mnk_multi_rope_make_plan(nullptr, no.out()));
}

}  // namespace mnk::test
