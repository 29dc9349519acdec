// The C API refuses invalid descriptors of KVCacheQuantize, KVCacheDequantize and Hadamard.
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
  Refusals no;

  explicit SoundOps(std::source_location where = std::source_location::current()) : no(where) {
    mnk_quantized_kv_cache_view view{};
    view.keys.codec.bits = 4;
    view.keys.codes = codes.get();
    view.keys.scales = scales.get();
    quantize.keys.tensor = vectors.get();
    quantize.into = view;
    dequantize.from = view;
    dequantize.keys = vectors.get();
    hadamard.from = vectors.get();
  }

  // Plans and encodes the changed op; both must be refused.
  template <typename Op>
  void refuse(Op op, mnk_plan* (*plan)(const Op*, mnk_error_out),
              bool (*encode)(mnk_encoder*, const Op*, mnk_error_out), const std::function<void(Op&)>& change) {
    change(op);
    no(plan(&op, no.out()));
    no(encode(makeEncoder(device.get()).get(), &op, no.out()));
  }
  void refuse(const std::function<void(mnk_kv_cache_quantize&)>& change) {
    refuse(quantize, mnk_kv_cache_quantize_make_plan, mnk_encoder_kv_cache_quantize, change);
  }
  void refuse(const std::function<void(mnk_kv_cache_dequantize&)>& change) {
    refuse(dequantize, mnk_kv_cache_dequantize_make_plan, mnk_encoder_kv_cache_dequantize, change);
  }
  void refuse(const std::function<void(mnk_hadamard&)>& change) {
    refuse(hadamard, mnk_hadamard_make_plan, mnk_encoder_hadamard, change);
  }
};

using Quantize = mnk_kv_cache_quantize;
using Dequantize = mnk_kv_cache_dequantize;

}  // namespace

TEST(CApiKVQuantize, DescriptorsMustBeComplete) {
  SoundOps ops;
  ops.refuse([](Quantize& op) { op.keys = {}; });
  ops.refuse([](Quantize& op) { op.into.keys = {}; });
  ops.refuse([](Quantize& op) { op.into.keys.scales = nullptr; });
  ops.refuse([](Quantize& op) { op.into.values.codes = op.into.keys.codes; });
  ops.refuse([](Quantize& op) { op.into.values.means = op.into.keys.codes; });
  ops.refuse([](Dequantize& op) { op.from.keys.codes = nullptr; });
  ops.refuse([](Dequantize& op) { op.from.values.scales = op.from.keys.scales; });
  ops.refuse([](Quantize& op) { op.has_rows = true, op.rows.positions.list_count = 1; });
  ops.refuse([](mnk_hadamard& op) { op.from = nullptr; });
  ops.refuse([](Quantize& op) { op.tokens = 1; });
  ops.refuse([](Quantize& op) { op.rows.sequences.list_count = 1; });
  ops.refuse([](mnk_hadamard& op) { op.has_signs = false, op.signs = MNK_KV_CODEC_NAME_MLX1; });
  Refusals& no = ops.no;
  no(mnk_encoder_kv_cache_quantize(nullptr, &ops.quantize, no.out()));
  no(mnk_encoder_kv_cache_dequantize(nullptr, &ops.dequantize, no.out()));
  no(mnk_encoder_hadamard(nullptr, &ops.hadamard, no.out()));
  no(mnk_kv_cache_quantize_make_plan(nullptr, no.out()));
  no(mnk_kv_cache_dequantize_make_plan(nullptr, no.out()));
  no(mnk_hadamard_make_plan(nullptr, no.out()));
}

TEST(CApiKVQuantize, NumbersThatAreUnknownOrTooManyAreRefused) {
  SoundOps ops;
  ops.refuse([](Quantize& op) { op.source_layout = number<mnk_kv_layout>(3); });
  ops.refuse([](Quantize& op) { op.into.layout = number<mnk_kv_layout>(3); });
  ops.refuse([](Quantize& op) { op.into.wrap = number<mnk_kv_wrap>(3); });
  ops.refuse([](Quantize& op) { op.into.keys.codec.name = number<mnk_kv_codec_name>(7); });
  ops.refuse([](Quantize& op) { op.options.key_scale = number<mnk_kv_scale_rule>(3); });
  ops.refuse([](Quantize& op) { op.options.value_scale = number<mnk_kv_scale_rule>(4); });
  ops.refuse([](Quantize& op) { op.options.non_finite = number<mnk_kv_non_finite>(2); });
  ops.refuse([](Dequantize& op) { op.layout = number<mnk_kv_layout>(3); });
  ops.refuse([](Dequantize& op) { op.domain = number<mnk_kv_domain>(2); });
  ops.refuse([](mnk_hadamard& op) { op.has_signs = true, op.signs = number<mnk_kv_codec_name>(4); });
  ops.refuse([](mnk_hadamard& op) { op.has_signs = true, op.signs = MNK_KV_CODEC_NAME_MLX1_AFFINE4; });
  // A count that no list can have, so that reading it would end the process.
  static const uint32_t one = 1;
  ops.refuse([](Quantize& op) { op.has_rows = true, op.rows.sequences = {&one, SIZE_MAX, nullptr}; });
  // What is a number is left to the op, which answers under its own name.
  ops.refuse([](Quantize& op) { op.options.candidates = 3; });
  ops.refuse([](Dequantize& op) { op.position = 2; });
  ops.refuse([&](mnk_hadamard& op) { op.into = ops.scales.get(); });
}

}  // namespace mnk::test
