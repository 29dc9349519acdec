// What is no descriptor of KVCacheQuantize, KVCacheDequantize or Hadamard is refused at the C API.
#include <functional>

#include "CApiHarness.hpp"

// Passing NULL where the header forbids it is what these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

// One descriptor of each op, sound until it is changed.
struct SoundOps {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> vectors = makeTensor(device.get(), MNK_F32, {1, 1, 32});
  Owned<mnk_tensor> codes = makeTensor(device.get(), MNK_U8, {1, 2, 16});
  Owned<mnk_tensor> scales = makeTensor(device.get(), MNK_F16, {1, 2});
  mnk_kv_cache_quantize quantize{};
  mnk_kv_cache_dequantize dequantize{};
  mnk_hadamard hadamard{};

  SoundOps() {
    mnk_quantized_kv_view view{};
    view.size = sizeof view;
    view.keys.codec.bits = 4;
    view.keys.codes = codes.get();
    view.keys.scales = scales.get();
    quantize.size = sizeof quantize;
    quantize.keys = vectors.get();
    quantize.into = view;
    dequantize.size = sizeof dequantize;
    dequantize.from = view;
    dequantize.keys = vectors.get();
    hadamard.size = sizeof hadamard;
    hadamard.from = vectors.get();
  }

  // Plans and encodes the op; both must say the same.
  template <typename Op>
  void expectRefused(const ExpectedError& expected, Op op, mnk_plan* (*plan)(const Op*, mnk_error_out),
                     bool (*encode)(mnk_encoder*, const Op*, mnk_error_out), const std::function<void(Op&)>& change) {
    change(op);
    Caught caught;
    EXPECT(!plan(&op, caught.out()));
    caught.expect(expected);
    const auto encoder = makeEncoder(device.get());
    EXPECT(!encode(encoder.get(), &op, caught.out()));
    caught.expect(expected);
  }
  void expectRefused(const ExpectedError& expected, const std::function<void(mnk_kv_cache_quantize&)>& change) {
    expectRefused(expected, quantize, mnk_kv_cache_quantize_make_plan, mnk_encoder_kv_cache_quantize, change);
  }
  void expectRefused(const ExpectedError& expected, const std::function<void(mnk_kv_cache_dequantize&)>& change) {
    expectRefused(expected, dequantize, mnk_kv_cache_dequantize_make_plan, mnk_encoder_kv_cache_dequantize, change);
  }
  void expectRefused(const ExpectedError& expected, const std::function<void(mnk_hadamard&)>& change) {
    expectRefused(expected, hadamard, mnk_hadamard_make_plan, mnk_encoder_hadamard, change);
  }
};

using Quantize = mnk_kv_cache_quantize;
using Dequantize = mnk_kv_cache_dequantize;

}  // namespace

TEST(CApiKVQuantize, DescriptorsMustHaveTheirSizes) {
  SoundOps ops;
  for (const size_t size : {size_t{0}, size_t{7}, SIZE_MAX}) {
    const auto wrong = [](std::string_view what) {
      return ExpectedError{
          .op = "C API", .what = what, .got = "size ", .expected = "size ", .fix = "Set size to sizeof("};
    };
    ops.expectRefused(wrong("mnk_kv_cache_quantize has the wrong size"), [=](Quantize& op) { op.size = size; });
    ops.expectRefused(wrong("mnk_kv_cache_dequantize has the wrong size"), [=](Dequantize& op) { op.size = size; });
    ops.expectRefused(wrong("mnk_hadamard has the wrong size"), [=](mnk_hadamard& op) { op.size = size; });
    ops.expectRefused(wrong("mnk_quantized_kv_view has the wrong size"), [=](Quantize& op) { op.into.size = size; });
    ops.expectRefused(wrong("mnk_quantized_kv_view has the wrong size"), [=](Dequantize& op) { op.from.size = size; });
  }
}

TEST(CApiKVQuantize, WhatIsMissingIsRefused) {
  SoundOps ops;
  const auto missing = [](std::string_view what) { return ExpectedError{.op = "C API", .what = what, .got = "NULL"}; };
  ops.expectRefused(missing("keys is missing"), [](Quantize& op) { op.keys = nullptr; });
  ops.expectRefused(missing("into.keys.codes is missing"), [](Quantize& op) { op.into.keys = {}; });
  ops.expectRefused(missing("into.keys.scales is missing"), [](Quantize& op) { op.into.keys.scales = nullptr; });
  ops.expectRefused(missing("into.values.scales is missing"),
                    [](Quantize& op) { op.into.values.codes = op.into.keys.codes; });
  ops.expectRefused(missing("into.values.codes is missing"),
                    [](Quantize& op) { op.into.values.means = op.into.keys.codes; });
  ops.expectRefused(missing("from.keys.codes is missing"), [](Dequantize& op) { op.from.keys.codes = nullptr; });
  ops.expectRefused(missing("from.values.codes is missing"),
                    [](Dequantize& op) { op.from.values.scales = op.from.keys.scales; });
  ops.expectRefused(missing("the list of rows is missing"), [](Quantize& op) {
    op.has_rows = true;
    op.positions.list_count = 1;
  });
  ops.expectRefused(missing("from is missing"), [](mnk_hadamard& op) { op.from = nullptr; });

  Caught caught;
  EXPECT(!mnk_encoder_kv_cache_quantize(nullptr, &ops.quantize, caught.out()));
  caught.expect({.op = "C API", .what = "encoder is missing"});
  EXPECT(!mnk_encoder_kv_cache_dequantize(nullptr, &ops.dequantize, caught.out()));
  caught.expect({.op = "C API", .what = "encoder is missing"});
  EXPECT(!mnk_encoder_hadamard(nullptr, &ops.hadamard, caught.out()));
  caught.expect({.op = "C API", .what = "encoder is missing"});
  EXPECT(!mnk_kv_cache_quantize_make_plan(nullptr, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_kv_cache_quantize is missing"});
  EXPECT(!mnk_kv_cache_dequantize_make_plan(nullptr, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_kv_cache_dequantize is missing"});
  EXPECT(!mnk_hadamard_make_plan(nullptr, caught.out()));
  caught.expect({.op = "C API", .what = "mnk_hadamard is missing"});
}

TEST(CApiKVQuantize, NumbersThatAreUnknownOrTooManyAreRefused) {
  SoundOps ops;
  ops.expectRefused({.op = "C API", .what = "not a layout", .got = "2"},
                    [](Quantize& op) { op.source_layout = number<mnk_kv_layout>(2); });
  ops.expectRefused({.op = "C API", .what = "not a layout", .got = "2"},
                    [](Quantize& op) { op.into.layout = number<mnk_kv_layout>(2); });
  ops.expectRefused({.op = "C API", .what = "not a wrap", .got = "3"},
                    [](Quantize& op) { op.into.wrap = number<mnk_kv_wrap>(3); });
  ops.expectRefused({.op = "C API", .what = "not a codec", .got = "7", .expected = "MNK_TURBO or MNK_MLX1"},
                    [](Quantize& op) { op.into.keys.codec.name = number<mnk_kv_codec_name>(7); });
  ops.expectRefused({.op = "C API", .what = "not a rule for scales", .got = "3", .expected = "MNK_SCALE_DEFAULT"},
                    [](Quantize& op) { op.options.key_scale = number<mnk_kv_scale_rule>(3); });
  ops.expectRefused({.op = "C API", .what = "not a rule for scales", .got = "4"},
                    [](Quantize& op) { op.options.value_scale = number<mnk_kv_scale_rule>(4); });
  ops.expectRefused({.op = "C API", .what = "not a treatment of NaN and infinity", .got = "2"},
                    [](Quantize& op) { op.options.non_finite = number<mnk_kv_non_finite>(2); });
  ops.expectRefused({.op = "C API", .what = "not a layout", .got = "2"},
                    [](Dequantize& op) { op.layout = number<mnk_kv_layout>(2); });
  ops.expectRefused({.op = "C API", .what = "not a domain", .got = "2", .expected = "MNK_ORIGINAL_DOMAIN"},
                    [](Dequantize& op) { op.domain = number<mnk_kv_domain>(2); });
  ops.expectRefused({.op = "C API", .what = "not a codec", .got = "2"}, [](mnk_hadamard& op) {
    op.has_signs = true;
    op.signs = number<mnk_kv_codec_name>(2);
  });
  // A count that no list can have, so that reading it would end the process.
  static const uint32_t one = 1;
  ops.expectRefused({.op = "KVCacheQuantize", .what = "there are too many rows", .expected = "at most 1024"},
                    [](Quantize& op) {
                      op.has_rows = true;
                      op.sequences = {&one, SIZE_MAX, nullptr};
                    });
}

// Numbers that the bindings pass on are refused by the op, under its own name.
TEST(CApiKVQuantize, RulesOfTheOpsAnswerUnderTheirNames) {
  SoundOps ops;
  ops.expectRefused({.op = "KVCacheQuantize", .what = "there is no search with so many candidates"},
                    [](Quantize& op) { op.options.candidates = 3; });
  ops.expectRefused({.op = "KVCacheQuantize", .what = "the codec has no codes of this length"},
                    [](Quantize& op) { op.into.keys.codec.bits = 0; });
  ops.expectRefused({.op = "KVCacheQuantize", .what = "the scale factor cannot be used"},
                    [](Quantize& op) { op.into.keys.codec.scale_factor = 2; });
  ops.expectRefused({.op = "KVCacheQuantize", .what = "the write runs past the end of a linear cache"},
                    [](Quantize& op) { op.position = 2; });
  ops.expectRefused({.op = "KVCacheQuantize", .what = "the sequence is not in the cache"},
                    [](Quantize& op) { op.sequence = 1; });
  ops.expectRefused({.op = "KVCacheQuantize", .what = "the counts do not fit"},
                    [](Quantize& op) { op.counts = op.keys; });
  ops.expectRefused({.op = "KVCacheQuantize", .what = "the probe is for one token of mlx1"},
                    [](Quantize& op) { op.probe = op.keys; });
  ops.expectRefused({.op = "KVCacheQuantize", .what = "the cache has no room for its pinned slots"},
                    [](Quantize& op) { op.into.pinned = 1; });
  ops.expectRefused({.op = "KVCacheDequantize", .what = "there is nothing to read into"},
                    [](Dequantize& op) { op.keys = nullptr; });
  ops.expectRefused({.op = "KVCacheDequantize", .what = "the cache does not hold these positions"},
                    [](Dequantize& op) { op.position = 2; });
  ops.expectRefused({.op = "KVCacheDequantize", .what = "the sequence is not in the cache"},
                    [](Dequantize& op) { op.sequence = 1; });
  ops.expectRefused({.op = "Hadamard", .what = "the tensors are not of floats"},
                    [&](mnk_hadamard& op) { op.from = ops.codes.get(); });
  ops.expectRefused({.op = "Hadamard", .what = "the target has another shape"},
                    [&](mnk_hadamard& op) { op.into = ops.scales.get(); });
}

}  // namespace mnk::test
