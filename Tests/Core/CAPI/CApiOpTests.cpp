// Ops through the C API: what it alone can refuse. CApiBindingTests.cpp compares calls with those of C++, and
// FieldTests.cpp reads each field.
#include "CApiHarness.hpp"
#include "CStructs.hpp"

namespace mnk::test {

namespace {

// One of each op, sound until it is changed.
struct SoundOps {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_encoder> encoder = makeEncoder(device.get());
  Owned<mnk_tensor> keys = makeTensor(device.get(), MNK_F32, {2, 8, 32});
  Owned<mnk_tensor> queries = makeTensor(device.get(), MNK_F32, {2, 4, 32});
  mnk_attended_sequence sequence{.sequence = 0, .length = 8};
  mnk_flash_decode attention{.queries = {.tensor = queries.get()},
                             .cache = {.dense = {.keys = keys.get(), .values = keys.get()}},
                             .sequences = &sequence,
                             .sequence_count = 1,
                             .results = {.output = queries.get()}};
  mnk_multi_rope rope{.queries = {.tensor = queries.get()},
                      .rotary = {.layout = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, .base = 100, .scale = 1}};
  mnk_kv_cache_write write{.keys = {.tensor = keys.get()}, .into = {.keys = keys.get()}};
  mnk_hadamard hadamard{.from = keys.get()};
  Refusals no;

  explicit SoundOps(std::source_location where = std::source_location::current()) : no(where) {}

  // Plans and encodes the changed op; both must be refused.
  template <typename Op, typename Change>
  void refuse(Op op, const Change& change) {
    change(op);
    std::apply([&](const auto&... functions) { (refuseWith(functions, op), ...); }, kCFunctions);
  }

 private:
  template <typename Functions, typename Op>
  void refuseWith(const Functions& functions, const Op& op) {
    if constexpr (std::is_invocable_v<decltype(functions.second), mnk_encoder*, const Op*, mnk_error_out>) {
      no(makePlan(functions.first, &op, device.get(), no.out()));
      no(functions.second(encoder.get(), &op, no.out()));
    }
  }
};

template <typename MakePlan, typename Op>
void refuseWithoutOperands(const std::pair<MakePlan, bool (*)(mnk_encoder*, const Op*, mnk_error_out)>& functions,
                           mnk_encoder* encoder, Refusals& no) {
  const Op zero{}, *const none = nullptr;
  for (const Op* op : {none, &zero}) {
    no(makePlan(functions.first, op, nullptr, no.out()));
    no(functions.second(encoder, op, no.out()));
  }
  no(functions.second(nullptr, &zero, no.out()));
}

}  // namespace

TEST(CApiOps, NeedAnEncoderAndOperands) {
  const auto device = makeDevice();
  const auto encoder = makeEncoder(device.get());
  Refusals no;
  std::apply([&](const auto&... op) { (refuseWithoutOperands(op, encoder.get(), no), ...); }, kCFunctions);
}

// Lists of sequences are as long as the queries allow, and a cache is dense or quantized.
TEST(CApiOps, AttentionHasOneCacheAndSequencesOfIt) {
  SoundOps ops;
  const auto refuse = [&](auto change) { ops.refuse(ops.attention, change); };
  refuse([](mnk_flash_decode& op) { op.cache = {}; });
  refuse([&](mnk_flash_decode& op) { op.cache.quantized.keys.codes = ops.keys.get(); });
  refuse([](mnk_flash_decode& op) { op.cache = {.quantized = {.pinned = 1}}; });
  refuse([](mnk_flash_decode& op) { op.cache.dense.keys = nullptr; });
  refuse([](mnk_flash_decode& op) { op.sequence_count = 3; });
  refuse([](mnk_flash_decode& op) { op.sequence_count = SIZE_MAX; });  // nothing of such a list is read
  refuse([](mnk_flash_decode& op) { op.results = {}; });
}

// Types that are read by hand. Lists that no caller can have must not be read, which would end the process.
TEST(CApiOps, IndicesAndPositionsHaveOneSource) {
  SoundOps ops;
  static const uint32_t row = 1;
  static const int32_t one = 1;
  mnk_tensor* const tensor = ops.keys.get();
  const auto refuseRows = [&](const mnk_row_indices& rows) {
    ops.refuse(ops.write, [&](mnk_kv_cache_write& op) { op.has_rows = true, op.rows.sequences = rows; });
  };
  refuseRows({.list_count = 3});
  refuseRows({.list = &row, .list_count = SIZE_MAX});
  refuseRows({.list = &row, .list_count = 1, .tensor = tensor});
  const auto refuseOffsets = [&](const mnk_rotary_offsets& offsets) {
    ops.refuse(ops.rope, [&](mnk_multi_rope& op) { op.offsets = offsets; });
  };
  refuseOffsets({.list_count = 2});
  refuseOffsets({.list_count = 2, .tensor = tensor});
  refuseOffsets({.list = &one, .list_count = 1, .tensor = tensor});
  refuseOffsets({.list = &one, .list_count = 1025});
  const auto refusePositions = [&](const mnk_rotary_positions& positions) {
    ops.refuse(ops.rope, [&](mnk_multi_rope& op) { op.positions = positions; });
  };
  refusePositions({.list_count = 6});
  refusePositions({.list_axes = 3});
  refusePositions({.first = 3});
  refusePositions({.sequence_count = 1});
  refusePositions({.has_first = true, .first = 3, .list = &one, .list_count = 1});
  refusePositions({.list = &one, .list_count = SIZE_MAX});
}

// Views that can be left out must then be empty. What is a number is left to the op, which answers under its own name.
TEST(CApiOps, OtherFieldsAreLeftToTheirStructs) {
  SoundOps ops;
  ops.refuse(ops.rope, [](mnk_multi_rope& op) { op.rotated_keys.has_strides = true; });
  ops.refuse(ops.rope, [](mnk_multi_rope& op) { op.rotary.scale = 0; });
  ops.refuse(ops.hadamard, [](mnk_hadamard& op) { op.has_signs = true, op.signs = MNK_KV_CODEC_NAME_MLX1_AFFINE4; });
  Refusals& no = ops.no;
  mnk_heads_view view{};
  const auto heads = makeTensor(ops.device.get(), MNK_F32, {2, 3, 4, 8});
  no(mnk_heads_view_set_columns(&view, heads.get(), 0, 1, 8, no.out()));
  no(mnk_heads_view_set_columns(nullptr, ops.keys.get(), 0, 1, 8, no.out()));
  no(mnk_heads_view_set_columns(&view, nullptr, 0, 1, 8, no.out()));
}

TEST(CApiKVCodec, SizesOfCodecsAndCaches) {
  Refusals no;
  mnk_kv_codec_sizes sizes{};
  const mnk_kv_codec codec{.name = MNK_KV_CODEC_NAME_MLX1, .bits = 5, .scale_factor = 0};
  EXPECT(mnk_kv_codec_get_sizes(&codec, 512, &sizes, nullptr));
  EXPECT(sizes.code_bytes == 512 && sizes.scales == 2 && sizes.scale_bytes == 8);
  no(mnk_kv_codec_get_sizes(&codec, 128, &sizes, no.out()));
  const mnk_kv_codec unknown{.name = number<mnk_kv_codec_name>(4), .bits = 4, .scale_factor = 0};
  no(mnk_kv_codec_get_sizes(&unknown, 512, &sizes, no.out()));
  no(mnk_kv_codec_get_sizes(nullptr, 512, &sizes, no.out()));
  no(mnk_kv_codec_get_sizes(&unknown, 512, nullptr, no.out()));

  mnk_quantized_cache_extents extents{};
  extents.keys.bits = 4;
  extents.head_dim = 128, extents.heads = 8, extents.capacity = 4096;
  uint64_t bytes = 0;
  const auto expectBytes = [&](uint64_t expected) {
    EXPECT(mnk_quantized_cache_get_byte_count(&extents, &bytes, nullptr));
    EXPECT_EQ(bytes, expected);
  };
  expectBytes(66u * 8 * 4096);
  extents.has_values = true, extents.sequences = 3;
  extents.values = {.name = MNK_KV_CODEC_NAME_MLX1, .bits = 8, .scale_factor = 0}, extents.value_head_dim = 256;
  expectBytes((66u + 260) * 8 * 4096 * 3);
  const auto refuse = [&](auto change) {
    mnk_quantized_cache_extents wrong = extents;
    change(wrong);
    no(mnk_quantized_cache_get_byte_count(&wrong, &bytes, no.out()));
  };
  refuse([](auto& wrong) { wrong.has_values = false; });
  refuse([](auto& wrong) { wrong.has_values = false, wrong.values = {}; });
  refuse([](auto& wrong) { wrong.capacity = uint64_t{1} << 60; });
  refuse([](auto& wrong) { wrong.values.bits = 7; });
  no(mnk_quantized_cache_get_byte_count(nullptr, &bytes, no.out()));
}

}  // namespace mnk::test
