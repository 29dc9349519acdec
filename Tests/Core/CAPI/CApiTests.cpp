#include <memory>
#include <vector>

#include "CApiHarness.hpp"

// Passing NULL where the header forbids it is what many of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

ExpectedError missing(std::string_view what) {
  return {.op = "C API", .what = what, .got = "NULL", .expected = "a pointer", .fix = "only arguments marked nullable"};
}

mnk_dispatch emptyDispatch(const char* function) {
  mnk_dispatch dispatch{};
  dispatch.size = sizeof dispatch;
  dispatch.function = function;
  dispatch.grid[0] = dispatch.grid[1] = dispatch.grid[2] = 1;
  return dispatch;
}

}  // namespace

TEST(CApi, NullHandlesAreErrors) {
  Caught caught;
  const uint64_t one = 1;
  uint8_t byte = 0;
  const auto device = makeDevice();
  const auto encoder = makeEncoder(device.get());
  mnk_cache_descriptor descriptor{};
  descriptor.size = sizeof descriptor;
  const mnk_dispatch dispatch = emptyDispatch("f");
  const mnk_kv_cache_write write{.size = sizeof write};

  EXPECT(!mnk_tensor_make(nullptr, MNK_F32, &one, 1, caught.out()));
  caught.expect(missing("device is missing"));
  EXPECT(!mnk_tensor_make(device.get(), MNK_F32, nullptr, 1, caught.out()));
  caught.expect(missing("shape is missing"));
  EXPECT(!mnk_tensor_make_slice(nullptr, 0, 1, caught.out()));
  caught.expect(missing("tensor is missing"));
  EXPECT(!mnk_tensor_make_reshaped(nullptr, &one, 1, caught.out()));
  caught.expect(missing("tensor is missing"));
  EXPECT(!mnk_tensor_read(nullptr, &byte, 1, caught.out()));
  caught.expect(missing("tensor is missing"));
  EXPECT(!mnk_tensor_write(nullptr, &byte, 1, caught.out()));
  caught.expect(missing("tensor is missing"));
  EXPECT(!mnk_device_make_host(nullptr, caught.out()));
  caught.expect(missing("mnk_host_options is missing"));
  EXPECT(!mnk_library_make_from_text(nullptr, "", "", caught.out()));
  caught.expect(missing("device is missing"));
  EXPECT(!mnk_library_make_from_text(device.get(), nullptr, "", caught.out()));
  caught.expect(missing("text is missing"));
  EXPECT(!mnk_library_make_from_text(device.get(), "", nullptr, caught.out()));
  caught.expect(missing("label is missing"));
  EXPECT(!mnk_library_make_from_path(device.get(), nullptr, caught.out()));
  caught.expect(missing("path is missing"));
  EXPECT(!mnk_library_make_shipped(nullptr, caught.out()));
  caught.expect(missing("device is missing"));
  EXPECT(!mnk_encoder_make(nullptr, nullptr, caught.out()));
  caught.expect(missing("device is missing"));
  EXPECT(!mnk_encoder_dispatch(nullptr, &dispatch, caught.out()));
  caught.expect(missing("encoder is missing"));
  EXPECT(!mnk_encoder_dispatch(encoder.get(), nullptr, caught.out()));
  caught.expect(missing("mnk_dispatch is missing"));
  EXPECT(!mnk_encoder_barrier(nullptr, caught.out()));
  caught.expect(missing("encoder is missing"));
  EXPECT(!mnk_encoder_commit(nullptr, nullptr, nullptr, caught.out()));
  caught.expect(missing("encoder is missing"));
  EXPECT(!mnk_completion_wait(nullptr, caught.out()));
  caught.expect(missing("completion is missing"));
  EXPECT(!mnk_kv_cache_write_make_plan(nullptr, caught.out()));
  caught.expect(missing("mnk_kv_cache_write is missing"));
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(missing("keys is missing"));
  EXPECT(!mnk_encoder_kv_cache_write(nullptr, &write, caught.out()));
  caught.expect(missing("encoder is missing"));
  EXPECT(!mnk_cache_make(nullptr, &descriptor, caught.out()));
  caught.expect(missing("device is missing"));
  EXPECT(!mnk_cache_make(device.get(), nullptr, caught.out()));
  caught.expect(missing("mnk_cache_descriptor is missing"));
  EXPECT(!mnk_cache_make_keys(nullptr, caught.out()));
  caught.expect(missing("cache is missing"));
  EXPECT(!mnk_cache_make_values(nullptr, caught.out()));
  caught.expect(missing("cache is missing"));
  EXPECT(!mnk_encoder_append(encoder.get(), nullptr, nullptr, nullptr, 0, caught.out()));
  caught.expect(missing("cache is missing"));
  EXPECT(!mnk_encoder_append_rows(nullptr, nullptr, nullptr, nullptr, nullptr, 0, caught.out()));
  caught.expect(missing("encoder is missing"));
  EXPECT(!mnk_cache_truncate(nullptr, 0, 0, caught.out()));
  caught.expect(missing("cache is missing"));
  EXPECT(!mnk_cache_reset_sequence(nullptr, 0, caught.out()));
  caught.expect(missing("cache is missing"));
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
  EXPECT_EQ(mnk_cache_bytes(nullptr), 0u);
  EXPECT_EQ(mnk_cache_next_position(nullptr, 0), 0u);
  EXPECT_EQ(mnk_cache_count(nullptr, 0), 0u);
  EXPECT(!mnk_cache_is_suspect(nullptr, 0));
  EXPECT_EQ(mnk_cache_slot(nullptr, 5), 0u);
  mnk_cache_reset(nullptr);
}

TEST(CApi, ReleasingNullDoesNothing) {
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

TEST(CApi, DescriptorsMustHaveTheirSize) {
  const WriteFixture fixture;
  const auto encoder = makeEncoder(fixture.device.get());
  Caught caught;
  mnk_dispatch dispatch = emptyDispatch("f");
  mnk_kv_cache_write write = fixture.write, nested = fixture.write;
  mnk_cache_descriptor descriptor{.size = sizeof descriptor};
  mnk_host_options options{.size = sizeof options};
  const auto expectWrong = [&](const std::string& what, size_t& size, size_t most, auto call) {
    for (const size_t wrong : {size_t{0}, size - 1, most + 1, SIZE_MAX}) {
      size = wrong;
      EXPECT(!call());
      caught.expect({.op = "C API",
                     .what = what + " has the wrong size",
                     .got = "size ",
                     .expected = "size ",
                     .fix = "Set size to sizeof("});
    }
  };
  expectWrong("mnk_dispatch", dispatch.size, 2 * sizeof dispatch,
              [&] { return mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()); });
  expectWrong("mnk_kv_cache_write", write.size, 2 * sizeof write,
              [&] { return mnk_encoder_kv_cache_write(encoder.get(), &write, caught.out()); });
  // A view inside another struct cannot be longer either: everything behind it would have moved.
  expectWrong("mnk_kv_cache_view", nested.into.size, sizeof nested.into,
              [&] { return mnk_kv_cache_write_make_plan(&nested, caught.out()); });
  expectWrong("mnk_cache_descriptor", descriptor.size, 2 * sizeof descriptor,
              [&] { return mnk_cache_make(fixture.device.get(), &descriptor, caught.out()); });
  expectWrong("mnk_host_options", options.size, 2 * sizeof options,
              [&] { return mnk_device_make_host(&options, caught.out()); });
}

TEST(CApi, ALongerDescriptorIsAcceptedWhileItsUnknownPartIsZero) {
  const WriteFixture fixture;
  struct Longer {
    mnk_kv_cache_write known;
    uint64_t unknown;
  };
  // Exactly as long as it says, so that a sanitizer sees any read behind it.
  const auto longer = std::make_unique<Longer>(Longer{fixture.write, 0});
  longer->known.size = sizeof(Longer);
  Caught caught;
  const Owned<mnk_plan> plan(mnk_kv_cache_write_make_plan(&longer->known, caught.out()), mnk_plan_release);
  EXPECT(plan && !caught.isSet());
  for (size_t byte = 0; byte < sizeof longer->unknown; ++byte) {
    longer->unknown = uint64_t{1} << (8 * byte);
    EXPECT(!mnk_kv_cache_write_make_plan(&longer->known, caught.out()));
    caught.expect({.op = "C API", .what = "mnk_kv_cache_write has the wrong size"});
  }
}

TEST(CApi, NumbersThatNameNothingAreErrors) {
  const WriteFixture fixture;
  const auto encoder = makeEncoder(fixture.device.get());
  Caught caught;
  const auto unknown = [](std::string_view what, std::string_view expected) {
    return ExpectedError{
        .op = "C API", .what = what, .got = "9", .expected = expected, .fix = "Use the constants of mnk.h."};
  };
  EXPECT(!mnk_tensor_make(fixture.device.get(), number<mnk_dtype>(9), nullptr, 0, caught.out()));
  caught.expect(unknown("the number is not a dtype", "MNK_F32 to MNK_I32"));
  EXPECT(!mnk_tensor_make(fixture.device.get(), number<mnk_dtype>(UINT32_MAX), nullptr, 0, caught.out()));
  EXPECT_EQ(mnk_dtype_size(number<mnk_dtype>(9)), 0u);
  EXPECT_EQ(std::string(mnk_dtype_name(number<mnk_dtype>(9))), "unknown dtype");

  mnk_kv_cache_write write = fixture.write;
  write.source_layout = number<mnk_kv_layout>(9);
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(unknown("not a layout", "MNK_HEAD_MAJOR or MNK_TOKEN_MAJOR"));
  write = fixture.write;
  write.into.layout = number<mnk_kv_layout>(9);
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(unknown("not a layout", "MNK_HEAD_MAJOR or MNK_TOKEN_MAJOR"));
  write = fixture.write;
  write.into.wrap = number<mnk_kv_wrap>(9);
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(unknown("not a wrap", "MNK_LINEAR or MNK_RING"));

  const mnk_binding binding{0, fixture.keys.get(), number<mnk_access>(9)};
  mnk_dispatch dispatch = emptyDispatch("kvCacheMove_2");
  dispatch.buffers = &binding;
  dispatch.buffer_count = 1;
  EXPECT(!mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()));
  caught.expect(unknown("the access of a binding is unknown", "MNK_READ, MNK_WRITE or MNK_READ_WRITE"));
  const mnk_constant constant{0, number<mnk_constant_type>(9), 0};
  dispatch = emptyDispatch("kvCacheMove_2");
  dispatch.constants = &constant;
  dispatch.constant_count = 1;
  EXPECT(!mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()));
  caught.expect(unknown("the type of a function constant is unknown", "MNK_CONSTANT_BOOL to"));

  mnk_cache_descriptor descriptor{};
  descriptor.size = sizeof descriptor;
  descriptor.dtype = number<mnk_dtype>(9);
  EXPECT(!mnk_cache_make(fixture.device.get(), &descriptor, caught.out()));
  caught.expect(unknown("not a dtype", "MNK_F32 to MNK_I32"));
  descriptor.dtype = MNK_F16;
  descriptor.when_full = number<mnk_kv_wrap>(9);
  EXPECT(!mnk_cache_make(fixture.device.get(), &descriptor, caught.out()));
  caught.expect(unknown("not a wrap", "MNK_LINEAR or MNK_RING"));
  mnk_host_options options{};
  options.size = sizeof options;
  for (const int32_t level : {-1, 99}) {
    options.level = level;
    EXPECT(!mnk_device_make_host(&options, caught.out()));
    caught.expect({.code = ErrorCode::unsupported, .op = "Host device"});
  }
  EXPECT(!mnk_device_make_at(mnk_device_count(), caught.out()));
  caught.expect({.op = "C API", .what = "there is no such device", .fix = "mnk_device_count"});
}

TEST(CApi, ListsThatAreMissingAreErrors) {
  const WriteFixture fixture;
  const auto encoder = makeEncoder(fixture.device.get());
  Caught caught;
  const auto refuse = [&](std::string_view what, auto change) {
    Context context{std::string(what)};
    mnk_dispatch dispatch = emptyDispatch("kvCacheMove_2");
    change(dispatch);
    EXPECT(!mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()));
    caught.expect(missing(what));
  };
  refuse("function", [](mnk_dispatch& d) { d.function = nullptr; });
  refuse("buffers", [](mnk_dispatch& d) { d.buffer_count = 1; });
  refuse("inlines", [](mnk_dispatch& d) { d.inline_count = 1; });
  refuse("threadgroup_memory", [](mnk_dispatch& d) { d.threadgroup_memory_count = 1; });
  refuse("constants", [](mnk_dispatch& d) { d.constant_count = 1; });
  static constexpr mnk_binding kNoTensor{};
  refuse("the tensor of a binding", [](mnk_dispatch& d) { d.buffers = &kNoTensor, d.buffer_count = 1; });
  static constexpr mnk_inline_bytes kNoBytes{0, nullptr, 4};
  refuse("inline bytes", [](mnk_dispatch& d) { d.inlines = &kNoBytes, d.inline_count = 1; });

  mnk_kv_cache_write write = fixture.write;
  write.has_rows = true;
  write.sequences.list_count = 3;
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(missing("the list of rows"));
  write = fixture.write;
  write.into.keys = nullptr;
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(missing("into.keys"));
  EXPECT(!mnk_tensor_read(fixture.keys.get(), nullptr, 96, caught.out()));
  caught.expect(missing("into"));
  EXPECT(!mnk_tensor_write(fixture.keys.get(), nullptr, 96, caught.out()));
  caught.expect(missing("from"));
}

// A count that no list can have: had it been copied before it was checked, memory would have been read past its end.
TEST(CApi, ListsThatAreTooLongAreRefusedBeforeTheyAreCopied) {
  WriteFixture fixture;
  Caught caught;
  const auto encoder = makeEncoder(fixture.device.get());
  const uint32_t one = 1;
  const mnk_inline_bytes inlined{.index = 0, .bytes = &one, .count = SIZE_MAX};
  mnk_dispatch dispatch = emptyDispatch("f");
  dispatch.inlines = &inlined;
  dispatch.inline_count = 1;
  EXPECT(!mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()));
  caught.expect({.op = "CommandEncoder",
                 .what = "there are too many inline bytes",
                 .got = "18446744073709551615",
                 .expected = "at most 4096",
                 .fix = "Pass fewer, or put the data in a tensor."});
  fixture.write.has_rows = true;
  fixture.write.sequences = {.list = &one, .list_count = SIZE_MAX, .tensor = nullptr};
  fixture.write.positions = {.list = &one, .list_count = 1, .tensor = nullptr};
  EXPECT(!mnk_kv_cache_write_make_plan(&fixture.write, caught.out()));
  caught.expect({.op = "KVCacheWrite",
                 .what = "there are too many rows",
                 .got = "1844674",
                 .expected = "at most 1024",
                 .fix = ""});
}

TEST(CApi, AZeroedDescriptorStoresEveryTokenAndACountOfZeroNone) {
  WriteFixture fixture;
  const auto grid = [&] {
    const Owned<mnk_plan> plan{mnk_kv_cache_write_make_plan(&fixture.write, nullptr), mnk_plan_release};
    return mnk_plan_dispatch(plan.get(), 0).grid[2];
  };
  EXPECT_EQ(grid(), 3u);
  fixture.write.has_tokens = true;
  EXPECT_EQ(grid(), 0u);
  fixture.write.tokens = 2;
  EXPECT_EQ(grid(), 2u);
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
  Caught caught;
  EXPECT(!mnk_tensor_read(reshaped.get(), six, 5, caught.out()));
  caught.expect({.op = "Tensor", .what = "exactly", .got = "5 bytes", .expected = "6 bytes", .fix = "slice"});
}

TEST(CApi, ARefusedOpCarriesItsFourParts) {
  WriteFixture fixture;
  fixture.write.position = 7;
  const auto encoder = makeEncoder(fixture.device.get());
  Caught caught;
  EXPECT(!mnk_encoder_kv_cache_write(encoder.get(), &fixture.write, caught.out()));
  caught.expect({.op = "KVCacheWrite"});
  for (const auto part : {mnk_error_what, mnk_error_got, mnk_error_expected, mnk_error_fix}) {
    EXPECT(*part(caught.get()) != 0);
  }
  EXPECT(!mnk_error_is_retryable(caught.get()));
}

}  // namespace mnk::test
