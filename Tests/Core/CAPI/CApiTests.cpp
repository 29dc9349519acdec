#include <memory>
#include <vector>

#include "CApiHarness.hpp"

namespace mnk::test {

namespace {

mnk_dispatch emptyDispatch(const char* function) {
  mnk_dispatch dispatch{};
  dispatch.function = function;
  dispatch.grid[0] = dispatch.grid[1] = dispatch.grid[2] = 1;
  return dispatch;
}

}  // namespace

TEST(CApi, NullHandlesAreErrors) {
  Refusals no;
  const uint64_t one = 1;
  uint8_t byte = 0;
  const auto device = makeDevice();
  const auto encoder = makeEncoder(device.get());
  mnk_attention_cache_descriptor descriptor{};
  const mnk_dispatch dispatch = emptyDispatch("f");

  no(mnk_tensor_make(nullptr, MNK_F32, &one, 1, no.out()));
  no(mnk_tensor_make(device.get(), MNK_F32, nullptr, 1, no.out()));
  no(mnk_tensor_make_slice(nullptr, 0, 1, no.out()));
  no(mnk_tensor_make_reshaped(nullptr, &one, 1, no.out()));
  no(mnk_tensor_read(nullptr, &byte, 1, no.out()));
  no(mnk_tensor_write(nullptr, &byte, 1, no.out()));
  no(mnk_device_make_host(nullptr, no.out()));
  no(mnk_library_make_from_text(nullptr, "", "", no.out()));
  no(mnk_library_make_from_text(device.get(), nullptr, "", no.out()));
  no(mnk_library_make_from_text(device.get(), "", nullptr, no.out()));
  no(mnk_library_make_from_path(device.get(), nullptr, no.out()));
  no(mnk_library_make_shipped(nullptr, no.out()));
  no(mnk_encoder_make(nullptr, nullptr, no.out()));
  no(mnk_encoder_dispatch(nullptr, &dispatch, no.out()));
  no(mnk_encoder_dispatch(encoder.get(), nullptr, no.out()));
  no(mnk_encoder_barrier(nullptr, no.out()));
  no(mnk_encoder_commit(nullptr, nullptr, nullptr, no.out()));
  no(mnk_completion_wait(nullptr, no.out()));
  no(mnk_cache_make(nullptr, &descriptor, no.out()));
  no(mnk_cache_make(device.get(), nullptr, no.out()));
  no(mnk_cache_make_keys(nullptr, no.out()));
  no(mnk_cache_make_values(nullptr, no.out()));
  no(mnk_encoder_append(encoder.get(), nullptr, nullptr, no.out()));
  no(mnk_cache_truncate(nullptr, 0, 0, no.out()));
  no(mnk_cache_reset_sequence(nullptr, 0, no.out()));
}

TEST(CApi, NullHandlesReadAsEmpty) {
  EXPECT_EQ(mnk_error_get_code(nullptr), MNK_INVALID_ARGUMENT);
  EXPECT(!mnk_error_is_retryable(nullptr));
  for (const auto part :
       {mnk_error_op, mnk_error_what, mnk_error_got, mnk_error_expected, mnk_error_fix, mnk_error_message}) {
    EXPECT_EQ(std::string(part(nullptr)), "");
  }
  EXPECT_EQ(std::string(mnk_device_kind(nullptr)), "");
  EXPECT_EQ(std::string(mnk_device_name(nullptr)), "");
  EXPECT(!mnk_device_copy_last_failure(nullptr));
  EXPECT_EQ(mnk_tensor_dtype(nullptr), MNK_F32);
  EXPECT_EQ(mnk_tensor_rank(nullptr), 0u);
  EXPECT_EQ(mnk_tensor_extent(nullptr, 0), 0u);
  EXPECT_EQ(mnk_tensor_byte_count(nullptr), 0u);
  EXPECT_EQ(mnk_tensor_byte_offset(nullptr), 0u);
  EXPECT_EQ(mnk_library_function_count(nullptr), 0u);
  EXPECT_EQ(std::string(mnk_library_function_name(nullptr, 0)), "");
  EXPECT_EQ(std::string(mnk_plan_text(nullptr)), "");
  EXPECT_EQ(mnk_plan_dispatch_count(nullptr), 0u);
  EXPECT_EQ(mnk_plan_scratch_bytes(nullptr), 0u);
  EXPECT_EQ(mnk_plan_dispatch(nullptr, 0).bytes_read, 0u);
  EXPECT(!mnk_completion_is_done(nullptr));
  EXPECT_EQ(mnk_completion_summary(nullptr).total.dispatches, 0u);
  EXPECT_EQ(mnk_completion_counts(nullptr, "x").dispatches, 0u);
  EXPECT(!mnk_completion_copy_kind(nullptr, 0));
  EXPECT(!mnk_completion_copy_text(nullptr));
  EXPECT_EQ(mnk_cache_byte_count(nullptr), 0u);
  mnk_sequence_state state{};
  EXPECT(!mnk_cache_get_sequence(nullptr, 0, &state, nullptr));
  EXPECT(!mnk_cache_is_suspect(nullptr));
  EXPECT_EQ(mnk_cache_slot(nullptr, 5), 0u);
  mnk_cache_reset(nullptr);
  // Nor does releasing it do anything.
  mnk_error_release(nullptr);
  mnk_device_release(nullptr);
  mnk_tensor_release(nullptr);
  mnk_library_release(nullptr);
  mnk_encoder_release(nullptr);
  mnk_completion_release(nullptr);
  mnk_plan_release(nullptr);
  mnk_cache_release(nullptr);
  mnk_text_release(nullptr);
}

TEST(CApi, ErrorsMayBeIgnoredAndSuccessLeavesThemAlone) {
  const auto device = makeDevice();
  EXPECT(!mnk_tensor_make(nullptr, MNK_F32, nullptr, 0, nullptr));
  auto* const mark = reinterpret_cast<mnk_error*>(uintptr_t{16});
  mnk_error* error = mark;
  const Owned<mnk_tensor> scalar(mnk_tensor_make(device.get(), MNK_F32, nullptr, 0, &error), mnk_tensor_release);
  EXPECT(scalar != nullptr);
  EXPECT(error == mark);
  EXPECT_EQ(mnk_tensor_byte_count(scalar.get()), 4u);
}

TEST(CApi, NumbersThatNameNothingAreErrors) {
  const WriteFixture fixture;
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  for (const uint32_t dtype : {9u, UINT32_MAX}) {
    no(mnk_tensor_make(fixture.device.get(), number<mnk_dtype>(dtype), nullptr, 0, no.out()));
  }
  EXPECT_EQ(mnk_dtype_size(number<mnk_dtype>(9)), 0u);
  EXPECT_EQ(std::string(mnk_dtype_name(number<mnk_dtype>(9))), "unknown dtype");
  const mnk_binding binding{0, fixture.keys.get(), number<mnk_access>(9)};
  const mnk_constant constant{0, number<mnk_constant_type>(9), 0};
  mnk_dispatch dispatch = emptyDispatch("kvCacheMove_2");
  dispatch.buffers = &binding;
  dispatch.buffer_count = 1;
  no(mnk_encoder_dispatch(encoder.get(), &dispatch, no.out()));
  dispatch = emptyDispatch("kvCacheMove_2");
  dispatch.constants = &constant;
  dispatch.constant_count = 1;
  no(mnk_encoder_dispatch(encoder.get(), &dispatch, no.out()));
  Caught caught;
  EXPECT(!mnk_device_make_at(mnk_device_count(), caught.out()));
  caught.expect({.op = "C API", .what = "there is no such device", .fix = "mnk_device_count"});
}

TEST(CApi, ListsThatAreMissingAreErrors) {
  const WriteFixture fixture;
  const auto encoder = makeEncoder(fixture.device.get());
  Refusals no;
  const auto refuse = [&](auto change) {
    mnk_dispatch dispatch = emptyDispatch("kvCacheMove_2");
    change(dispatch);
    no(mnk_encoder_dispatch(encoder.get(), &dispatch, no.out()));
  };
  refuse([](mnk_dispatch& d) { d.function = nullptr; });
  refuse([](mnk_dispatch& d) { d.buffer_count = 1; });
  refuse([](mnk_dispatch& d) { d.inline_count = 1; });
  refuse([](mnk_dispatch& d) { d.threadgroup_memory_count = 1; });
  refuse([](mnk_dispatch& d) { d.constant_count = 1; });
  static constexpr mnk_binding kNoTensor{};
  refuse([](mnk_dispatch& d) { d.buffers = &kNoTensor, d.buffer_count = 1; });
  static constexpr mnk_inline_bytes kNoBytes{.index = 0, .bytes = nullptr, .count = 4};
  refuse([](mnk_dispatch& d) { d.inlines = &kNoBytes, d.inline_count = 1; });
  // A count that no list can have: had it been copied before it was checked, memory would have been read past its end.
  static constexpr uint32_t kOne = 1;
  static constexpr mnk_inline_bytes kTooMany{.index = 0, .bytes = &kOne, .count = SIZE_MAX};
  refuse([](mnk_dispatch& d) { d.inlines = &kTooMany, d.inline_count = 1; });
  // And lists that their counts would leave unread.
  static constexpr mnk_threadgroup_memory kMemory{};
  static constexpr mnk_constant kConstant{};
  refuse([](mnk_dispatch& d) { d.buffers = &kNoTensor; });
  refuse([](mnk_dispatch& d) { d.inlines = &kNoBytes; });
  refuse([](mnk_dispatch& d) { d.threadgroup_memory = &kMemory; });
  refuse([](mnk_dispatch& d) { d.constants = &kConstant; });
  no(mnk_tensor_read(fixture.keys.get(), nullptr, 96, no.out()));
  no(mnk_tensor_write(fixture.keys.get(), nullptr, 96, no.out()));
}

TEST(CApi, TensorsAreReadAndWrittenThroughTheirSlices) {
  const auto device = makeDevice();
  const auto tensor = makeTensor(device.get(), MNK_U8, {4, 3});
  std::vector<uint8_t> bytes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT(mnk_tensor_write(tensor.get(), bytes.data(), 12, nullptr));
  const Owned<mnk_tensor> slice(mnk_tensor_make_slice(tensor.get(), 1, 2, nullptr), mnk_tensor_release);
  const uint64_t flat = 6;
  const Owned<mnk_tensor> reshaped(mnk_tensor_make_reshaped(slice.get(), &flat, 1, nullptr), mnk_tensor_release);
  uint8_t six[6] = {};
  EXPECT(mnk_tensor_read(reshaped.get(), six, 6, nullptr));
  EXPECT_EQ(int(six[0]), 3);
  EXPECT_EQ(int(six[5]), 8);
  EXPECT_EQ(mnk_tensor_byte_offset(reshaped.get()), 3u);
  EXPECT_EQ(mnk_tensor_rank(slice.get()), 2u);
  EXPECT_EQ(mnk_tensor_extent(slice.get(), 0), 2u);
  EXPECT_EQ(mnk_tensor_extent(slice.get(), SIZE_MAX), 0u);
  Refusals no;
  no(mnk_tensor_read(reshaped.get(), six, 5, no.out()));
}

}  // namespace mnk::test
