// MultiRoPE through the C API: what is no descriptor is refused. CApiBindingTests.cpp has the rest.
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
    rope.size = sizeof rope;
    rope.queries = view(queries.get());
    rope.rotary.size = sizeof rope.rotary;
    rope.rotary.layout = MNK_HALF_SPLIT;
    rope.rotary.base = 100;
    rope.rotary.scale = 1;
  }

  static mnk_heads_view view(mnk_tensor* tensor) {
    mnk_heads_view view{};
    view.size = sizeof view;
    view.tensor = tensor;
    view.layout = MNK_TOKEN_MAJOR;
    return view;
  }
};

}  // namespace

TEST(CApiMultiRoPE, ColumnsAreAViewOfAFusedProjection) {
  // The last two of four heads, as columns of [sequences, tokens, width].
  RopeFixture fixture;
  const uint64_t shape[] = {2, 3, 32};
  const Owned<mnk_tensor> fused(mnk_tensor_make_reshaped(fixture.queries.get(), shape, 3, nullptr), mnk_tensor_release);
  Caught caught;
  const mnk_heads_view& view = fixture.rope.queries;
  EXPECT(mnk_heads_view_set_columns(&fixture.rope.queries, fused.get(), 16, 2, 8, caught.out()));
  EXPECT(view.size == sizeof view && view.tensor == fused.get() && view.has_strides);
  const std::vector<uint64_t> got{view.sequences, view.tokens,          view.heads,        view.head_dim,
                                  view.offset,    view.sequence_stride, view.token_stride, view.head_stride};
  EXPECT_EQ(fmt::format("{}", fmt::join(got, " ")), "2 3 2 8 16 96 32 8");
  EXPECT(!mnk_heads_view_set_columns(&fixture.rope.queries, fixture.queries.get(), 0, 1, 8, caught.out()));
  caught.expect({.op = "HeadsView", .what = "the tensor has no columns", .got = "[2, 3, 4, 8]"});
  EXPECT(!mnk_heads_view_set_columns(nullptr, fused.get(), 0, 1, 8, caught.out()));
  caught.expect({.op = "C API", .what = "view is missing"});
  EXPECT(!mnk_heads_view_set_columns(&fixture.rope.queries, nullptr, 0, 1, 8, caught.out()));
  caught.expect({.op = "C API", .what = "tensor is missing"});
}

TEST(CApiMultiRoPE, DescriptorsMustHaveTheirSizes) {
  RopeFixture fixture;
  const mnk_multi_rope sound = fixture.rope;
  const auto expectWrong = [&](std::string_view what, auto change) {
    for (const size_t size : {size_t{0}, size_t{7}, SIZE_MAX}) {
      fixture.rope = sound;
      fixture.rope.keys = RopeFixture::view(fixture.keys.get());
      change(fixture.rope, size);
      Caught caught;
      EXPECT(!mnk_multi_rope_make_plan(&fixture.rope, caught.out()));
      caught.expect({.op = "C API", .what = what, .got = "size ", .expected = "size ", .fix = "Set size to sizeof("});
    }
  };
  expectWrong("mnk_multi_rope has the wrong size", [](mnk_multi_rope& rope, size_t size) { rope.size = size; });
  expectWrong("mnk_heads_view has the wrong size", [](mnk_multi_rope& rope, size_t size) { rope.queries.size = size; });
  expectWrong("mnk_heads_view has the wrong size", [](mnk_multi_rope& rope, size_t size) { rope.keys.size = size; });
  expectWrong("mnk_rotary_embedding has the wrong size",
              [](mnk_multi_rope& rope, size_t size) { rope.rotary.size = size; });
}

TEST(CApiMultiRoPE, WhatIsMissingUnknownOrTooLongIsRefused) {
  RopeFixture fixture;
  const mnk_multi_rope sound = fixture.rope;
  const auto expectRefused = [&](const ExpectedError& expected, auto change) {
    fixture.rope = sound;
    change(fixture.rope);
    Caught caught;
    EXPECT(!mnk_multi_rope_make_plan(&fixture.rope, caught.out()));
    caught.expect(expected);
    const auto encoder = makeEncoder(fixture.device.get());
    EXPECT(!mnk_encoder_multi_rope(encoder.get(), &fixture.rope, caught.out()));
    caught.expect(expected);
  };
  expectRefused({.op = "C API", .what = "queries.tensor is missing", .got = "NULL"},
                [](mnk_multi_rope& rope) { rope.queries.tensor = nullptr; });
  expectRefused({.op = "C API", .what = "positions is missing"},
                [](mnk_multi_rope& rope) { rope.positions.list_count = 6; });
  expectRefused({.op = "C API", .what = "frequency_factors is missing"},
                [](mnk_multi_rope& rope) { rope.rotary.frequency_factor_count = 4; });
  expectRefused({.op = "C API", .what = "not a layout", .got = "2"},
                [](mnk_multi_rope& rope) { rope.queries.layout = number<mnk_kv_layout>(2); });
  expectRefused({.op = "C API", .what = "not a rotary layout", .got = "7", .expected = "MNK_INTERLEAVED_PAIRS"},
                [](mnk_multi_rope& rope) { rope.rotary.layout = number<mnk_rotary_layout>(7); });
  expectRefused({.op = "C API", .what = "not a rotary pairing", .got = "3"},
                [](mnk_multi_rope& rope) { rope.rotary.pairing = number<mnk_rotary_pairing>(3); });
  expectRefused({.op = "C API", .what = "not a rotary axis", .got = "2"},
                [](mnk_multi_rope& rope) { rope.rotary.other_axis = number<mnk_rotary_other_axis>(2); });
  // Counts that no list can have, so that reading it would end the process.
  static const int32_t one = 1;
  static const float factor = 1;
  expectRefused({.op = "MultiRoPE", .what = "there are too many positions", .expected = "at most 1024"},
                [](mnk_multi_rope& rope) {
                  rope.positions = {&one, SIZE_MAX, 1, nullptr};
                });
  expectRefused({.op = "MultiRoPE", .what = "there are too many offsets", .expected = "at most 1024"},
                [](mnk_multi_rope& rope) {
                  rope.offsets = {&one, 1025, 1, nullptr};
                });
  expectRefused({.op = "MultiRoPE",
                 .what = "there are too many frequency factors",
                 .expected = "at most 512",
                 .fix = "for each pair"},
                [](mnk_multi_rope& rope) {
                  rope.rotary.frequency_factors = &factor;
                  rope.rotary.frequency_factor_count = SIZE_MAX;
                });
  expectRefused({.op = "MultiRoPE", .what = "the scale is not a positive number", .got = "0"},
                [](mnk_multi_rope& rope) { rope.rotary.scale = 0; });
  Caught caught;
  EXPECT(!mnk_encoder_multi_rope(nullptr, &sound, caught.out()));
  caught.expect({.op = "C API", .what = "encoder is missing"});
  EXPECT(!mnk_multi_rope_make_plan(nullptr, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_multi_rope is missing"});
}

}  // namespace mnk::test
