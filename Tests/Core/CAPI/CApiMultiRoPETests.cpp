// MultiRoPE through the C API: every field of the descriptor arrives, and what is no descriptor is refused.
#include <cmath>
#include <cstring>

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

  std::string planText() const {
    Caught caught;
    const Owned<mnk_plan> plan(mnk_multi_rope_make_plan(&rope, caught.out()), mnk_plan_release);
    return plan ? mnk_plan_text(plan.get()) : mnk_error_message(caught.get());
  }

  // All of the tensor is x; what becomes of the first elements.
  std::vector<float> run(mnk_tensor* read, std::vector<float> fill) const {
    std::vector<float> all(192);
    for (size_t i = 0; i < all.size(); ++i) all[i] = fill[i % fill.size()];
    mnk_tensor_write(queries.get(), all.data(), 768, nullptr);
    mnk_tensor_write(keys.get(), all.data(), 384, nullptr);
    const auto encoder = makeEncoder(device.get());
    Caught caught;
    if (!mnk_encoder_multi_rope(encoder.get(), &rope, caught.out())) {
      fail(__FILE__, __LINE__, mnk_error_message(caught.get()));
      throw Stop{};
    }
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                     mnk_completion_release);
    EXPECT(mnk_completion_wait(done.get(), nullptr));
    std::vector<float> result(mnk_tensor_byte_count(read) / 4);
    EXPECT(mnk_tensor_read(read, result.data(), mnk_tensor_byte_count(read), nullptr));
    return result;
  }
};

// Pair 0 of every vector is (1, 0): its elements become the cosine and the sine.
const std::vector<float> kUnit = {1, 0, 0, 0, 0, 0, 0, 0};

void expectAngle(const std::vector<float>& elements, size_t vector, double angle, double magnitude = 1,
                 size_t second = 4) {
  const double cosine = elements[vector * 8], sine = elements[vector * 8 + second];
  if (std::abs(cosine - magnitude * std::cos(angle)) < 1e-6 && std::abs(sine - magnitude * std::sin(angle)) < 1e-6) {
    return;
  }
  fail(__FILE__, __LINE__, fmt::format("vector {}: got {} and {}, expected the angle {}", vector, cosine, sine, angle));
}

}  // namespace

TEST(CApiMultiRoPE, PositionsAndOffsetsArrive) {
  RopeFixture fixture;
  fixture.rope.first_position = -2;
  auto turned = fixture.run(fixture.queries.get(), kUnit);
  expectAngle(turned, 0, -2);
  expectAngle(turned, 4, -1);
  expectAngle(turned, 12, -2);

  const int32_t offsets[] = {10, -10};
  fixture.rope.offsets = {.list = offsets, .list_count = 2, .list_axes = 0, .tensor = nullptr};
  turned = fixture.run(fixture.queries.get(), kUnit);
  expectAngle(turned, 0, 8);
  expectAngle(turned, 12, -12);

  const int32_t positions[] = {1, 2, 3, 4, 5, 6};
  fixture.rope.positions = {.list = positions, .list_count = 6, .list_axes = 0, .tensor = nullptr};
  fixture.rope.offsets = {};
  turned = fixture.run(fixture.queries.get(), kUnit);
  expectAngle(turned, 4, 2);
  expectAngle(turned, 20, 6);

  const auto tensor = makeTensor(fixture.device.get(), MNK_I32, {2, 6});
  int32_t numbers[12] = {7, 8, 9, 10, 11, 12, -7, -8, -9, -10, -11, -12};
  EXPECT(mnk_tensor_write(tensor.get(), numbers, sizeof numbers, nullptr));
  fixture.rope.positions = {.list = nullptr, .list_count = 0, .list_axes = 0, .tensor = tensor.get()};
  fixture.rope.rotary.layout = MNK_MROPE;
  fixture.rope.rotary.sections[1] = 1;
  turned = fixture.run(fixture.queries.get(), kUnit);
  expectAngle(turned, 20, -12);
}

TEST(CApiMultiRoPE, KeysAndPlacesForResultsArrive) {
  RopeFixture fixture;
  fixture.rope.first_position = 1;
  fixture.rope.keys = RopeFixture::view(fixture.keys.get());
  expectAngle(fixture.run(fixture.keys.get(), kUnit), 2, 2);
  const auto rotated = makeTensor(fixture.device.get(), MNK_F32, {2, 4, 3, 8});
  const auto rotatedKeys = makeTensor(fixture.device.get(), MNK_F32, {2, 3, 2, 8});
  fixture.rope.rotated_queries = RopeFixture::view(rotated.get());
  fixture.rope.rotated_queries.layout = MNK_HEAD_MAJOR;
  fixture.rope.rotated_keys = RopeFixture::view(rotatedKeys.get());
  auto turned = fixture.run(rotated.get(), kUnit);
  expectAngle(turned, 1, 2);
  expectAngle(fixture.run(rotatedKeys.get(), kUnit), 4, 3);
  EXPECT_EQ(fixture.run(fixture.queries.get(), kUnit)[0], 1.0f);

  // The second head alone.
  fixture.rope.rotated_queries = fixture.rope.rotated_keys = fixture.rope.keys = {};
  mnk_heads_view& view = fixture.rope.queries;
  view.has_strides = true;
  view.sequences = 2, view.tokens = 3, view.heads = 1, view.head_dim = 8;
  view.offset = 8, view.sequence_stride = 96, view.token_stride = 32, view.head_stride = 0;
  turned = fixture.run(fixture.queries.get(), kUnit);
  expectAngle(turned, 0, 0);
  expectAngle(turned, 1, 1);
  expectAngle(turned, 5, 2);
  expectAngle(turned, 13, 1);
}

TEST(CApiMultiRoPE, ColumnsAreAViewOfAFusedProjection) {
  RopeFixture fixture;
  fixture.rope.first_position = 1;
  // The last two of four heads, as columns of [sequences, tokens, width].
  const uint64_t shape[] = {2, 3, 32};
  const Owned<mnk_tensor> fused(mnk_tensor_make_reshaped(fixture.queries.get(), shape, 3, nullptr), mnk_tensor_release);
  Caught caught;
  EXPECT(mnk_heads_view_set_columns(&fixture.rope.queries, fused.get(), 16, 2, 8, caught.out()));
  EXPECT_EQ(fixture.rope.queries.size, sizeof(mnk_heads_view));
  const auto turned = fixture.run(fixture.queries.get(), kUnit);
  for (const auto& [vector, angle] : {std::pair{0, 0}, {1, 0}, {2, 1}, {3, 1}, {6, 2}, {12, 0}, {14, 1}, {23, 3}}) {
    expectAngle(turned, static_cast<size_t>(vector), angle);
  }
  EXPECT(!mnk_heads_view_set_columns(&fixture.rope.queries, fixture.queries.get(), 0, 1, 8, caught.out()));
  caught.expect({.op = "HeadsView", .what = "the tensor has no columns", .got = "[2, 3, 4, 8]"});
  EXPECT(!mnk_heads_view_set_columns(nullptr, fused.get(), 0, 1, 8, caught.out()));
  caught.expect({.op = "C API", .what = "view is missing"});
  EXPECT(!mnk_heads_view_set_columns(&fixture.rope.queries, nullptr, 0, 1, 8, caught.out()));
  caught.expect({.op = "C API", .what = "tensor is missing"});
}

TEST(CApiMultiRoPE, TheEmbeddingArrives) {
  RopeFixture fixture;
  mnk_rotary_embedding& rotary = fixture.rope.rotary;
  const mnk_rotary_embedding plain = rotary;
  fixture.rope.first_position = 1;
  const auto turnedBy = [&](double angle, double magnitude = 1, size_t second = 4) {
    expectAngle(fixture.run(fixture.queries.get(), kUnit), 0, angle, magnitude, second);
    rotary = plain;
  };
  turnedBy(1);
  rotary.layout = MNK_INTERLEAVED_PAIRS;
  turnedBy(1, 1, 1);
  rotary.has_rope_dim = true, rotary.rope_dim = 4;
  turnedBy(1, 1, 2);
  rotary.has_rope_dim = true, rotary.rope_dim = 4, rotary.pairing = MNK_HALF_OF_HEAD_DIM;
  turnedBy(1, 1, 4);
  rotary.pairing = MNK_NEIGHBORS;
  turnedBy(1, 1, 1);
  rotary.scale = 0.25;
  turnedBy(0.25);
  const float factors[] = {2, 1, 1, 1};
  rotary.frequency_factors = factors, rotary.frequency_factor_count = 4;
  turnedBy(0.5);
  rotary.is_inverse = true;
  turnedBy(-1);
  rotary.has_yarn = true, rotary.scale = 0.5;
  rotary.yarn = {.original_context = 1,
                 .extension_factor = 1,
                 .attention_factor = 2,
                 .beta_fast = 4,
                 .beta_slow = 1,
                 .keeps_fractions = false};
  // Of so short a context every pair but the first is scaled.
  turnedBy(1, 2 * (1 + 0.1 * std::log(2.0)));
  // Without a blend only the factor is read.
  rotary.has_yarn = true, rotary.scale = 0.5, rotary.yarn.attention_factor = 3;
  turnedBy(0.5, 3);
  rotary.layout = MNK_VISION, rotary.sections[0] = 1, rotary.sections[1] = 3;
  turnedBy(1);
  // The base shows in the second pair: 100^(-2 / 8).
  const auto second = fixture.run(fixture.queries.get(), {0, 1, 0, 0, 0, 0, 0, 0});
  EXPECT(std::abs(second[1] - std::cos(std::pow(100.0, -0.25))) < 1e-6);
}

// With corners between pairs the second one is blended otherwise.
TEST(CApiMultiRoPE, CornersOfYaRNAreRoundedUnlessToldOtherwise) {
  RopeFixture fixture;
  mnk_rotary_embedding& rotary = fixture.rope.rotary;
  fixture.rope.first_position = 1;
  rotary.scale = 0.5, rotary.has_yarn = true;
  rotary.yarn = {.original_context = 20,
                 .extension_factor = 1,
                 .attention_factor = 1,
                 .beta_fast = 1.2f,
                 .beta_slow = 0.5f,
                 .keeps_fractions = false};
  const auto secondPair = [&] { return fixture.run(fixture.queries.get(), {0, 1, 0, 0, 0, 0, 0, 0})[5]; };
  const float rounded = secondPair();
  rotary.yarn.keeps_fractions = true;
  EXPECT(std::abs(secondPair() - rounded) > 1e-3f);
}

TEST(CApiMultiRoPE, SparePairsOfImropeGoWhereTheySay) {
  RopeFixture fixture;
  fixture.rope.rotary.layout = MNK_IMROPE;
  fixture.rope.rotary.sections[0] = 2, fixture.rope.rotary.sections[1] = 1, fixture.rope.rotary.sections[3] = 1;
  fixture.rope.rotary.base = 1;
  const int32_t positions[24] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4};
  fixture.rope.positions = {.list = positions, .list_count = 24, .list_axes = 4, .tensor = nullptr};
  // Pair 2 has no section of its own.
  const auto axisOfPair2 = [&] { return std::acos(fixture.run(fixture.queries.get(), {0, 0, 1, 0, 0, 0, 0, 0})[2]); };
  EXPECT(std::abs(axisOfPair2() - 1) < 1e-5);
  fixture.rope.rotary.other_axis = MNK_OTHER_AXIS_3;
  EXPECT(std::abs(axisOfPair2() - (2 * 3.14159265358979 - 4)) < 1e-5);
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

TEST(CApiMultiRoPE, APlanSaysWhatWouldRun) {
  const RopeFixture fixture;
  EXPECT_EQ(fixture.planText(),
            "MultiRoPE: 1 dispatch\n"
            "  multiRoPE_f32_f32 {isVectorized}: 1 x 4 x 6 threads, "
            "768 bytes read, 768 bytes written");
}

}  // namespace mnk::test
