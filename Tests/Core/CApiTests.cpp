#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "MLXNativeKernels/mnk.h"
#include "Support/Check.hpp"

// Passing NULL where the header forbids it is what many of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

template <typename Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

Owned<mnk_device> makeDevice() {
  return {mnk_device_make_default(nullptr), mnk_device_release};
}
Owned<mnk_tensor> makeTensor(mnk_device* device, mnk_dtype dtype, std::vector<uint64_t> shape) {
  return {mnk_tensor_make(device, dtype, shape.data(), shape.size(), nullptr), mnk_tensor_release};
}
Owned<mnk_encoder> makeEncoder(mnk_device* device) {
  return {mnk_encoder_make(device, nullptr, nullptr), mnk_encoder_release};
}

// Catches the error of one call: Caught caught; call(…, caught.out()); caught.expect(…).
class Caught {
 public:
  ~Caught() { mnk_error_release(error_); }
  mnk_error_out out() {
    mnk_error_release(error_);
    error_ = nullptr;
    return &error_;
  }
  bool isSet() const { return error_ != nullptr; }
  const mnk_error* get() const { return error_; }

  // The parts are compared as EXPECT_ERROR does.
  void expect(int line, const ExpectedError& expected) const {
    if (!error_) return fail(__FILE__, line, fmt::format("no error, expected: {}", expected.what));
    const Error error{.code = static_cast<ErrorCode>(mnk_error_get_code(error_)),
                      .op = mnk_error_op(error_),
                      .what = mnk_error_what(error_),
                      .got = mnk_error_got(error_),
                      .expected = mnk_error_expected(error_),
                      .fix = mnk_error_fix(error_)};
    expectError(__FILE__, line, "error", &error, expected);
    EXPECT_EQ(std::string(mnk_error_message(error_)), error.message());
  }

 private:
  mnk_error* error_ = nullptr;
};

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

// A cache, keys for it, and a write of them.
struct WriteScene {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> keys = makeTensor(device.get(), MNK_F32, {3, 2, 4});
  Owned<mnk_tensor> cache = makeTensor(device.get(), MNK_F32, {2, 8, 4});
  mnk_kv_cache_write write{};

  WriteScene() {
    write.size = sizeof write;
    write.keys = keys.get();
    write.source_layout = MNK_TOKEN_MAJOR;
    write.tokens = MNK_ALL_TOKENS;
    write.into.size = sizeof write.into;
    write.into.keys = cache.get();
  }
};

template <typename Enum>
Enum number(uint32_t value) {
  return static_cast<Enum>(value);
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
  caught.expect(__LINE__, missing("device is missing"));
  EXPECT(!mnk_tensor_make(device.get(), MNK_F32, nullptr, 1, caught.out()));
  caught.expect(__LINE__, missing("shape is missing"));
  EXPECT(!mnk_tensor_make_slice(nullptr, 0, 1, caught.out()));
  caught.expect(__LINE__, missing("tensor is missing"));
  EXPECT(!mnk_tensor_make_reshaped(nullptr, &one, 1, caught.out()));
  caught.expect(__LINE__, missing("tensor is missing"));
  EXPECT(!mnk_tensor_read(nullptr, &byte, 1, caught.out()));
  caught.expect(__LINE__, missing("tensor is missing"));
  EXPECT(!mnk_tensor_write(nullptr, &byte, 1, caught.out()));
  caught.expect(__LINE__, missing("tensor is missing"));
  EXPECT(!mnk_device_make_host(nullptr, caught.out()));
  caught.expect(__LINE__, missing("mnk_host_options is missing"));
  EXPECT(!mnk_library_make_from_text(nullptr, "", "", caught.out()));
  caught.expect(__LINE__, missing("device is missing"));
  EXPECT(!mnk_library_make_from_text(device.get(), nullptr, "", caught.out()));
  caught.expect(__LINE__, missing("text is missing"));
  EXPECT(!mnk_library_make_from_text(device.get(), "", nullptr, caught.out()));
  caught.expect(__LINE__, missing("label is missing"));
  EXPECT(!mnk_library_make_from_path(device.get(), nullptr, caught.out()));
  caught.expect(__LINE__, missing("path is missing"));
  EXPECT(!mnk_library_make_shipped(nullptr, caught.out()));
  caught.expect(__LINE__, missing("device is missing"));
  EXPECT(!mnk_encoder_make(nullptr, nullptr, caught.out()));
  caught.expect(__LINE__, missing("device is missing"));
  EXPECT(!mnk_encoder_dispatch(nullptr, &dispatch, caught.out()));
  caught.expect(__LINE__, missing("encoder is missing"));
  EXPECT(!mnk_encoder_dispatch(encoder.get(), nullptr, caught.out()));
  caught.expect(__LINE__, missing("mnk_dispatch is missing"));
  EXPECT(!mnk_encoder_barrier(nullptr, caught.out()));
  caught.expect(__LINE__, missing("encoder is missing"));
  EXPECT(!mnk_encoder_commit(nullptr, nullptr, nullptr, caught.out()));
  caught.expect(__LINE__, missing("encoder is missing"));
  EXPECT(!mnk_completion_wait(nullptr, caught.out()));
  caught.expect(__LINE__, missing("completion is missing"));
  EXPECT(!mnk_kv_cache_write_make_plan(nullptr, caught.out()));
  caught.expect(__LINE__, missing("mnk_kv_cache_write is missing"));
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(__LINE__, missing("keys is missing"));
  EXPECT(!mnk_encoder_kv_cache_write(nullptr, &write, caught.out()));
  caught.expect(__LINE__, missing("encoder is missing"));
  EXPECT(!mnk_cache_make(nullptr, &descriptor, caught.out()));
  caught.expect(__LINE__, missing("device is missing"));
  EXPECT(!mnk_cache_make(device.get(), nullptr, caught.out()));
  caught.expect(__LINE__, missing("mnk_cache_descriptor is missing"));
  EXPECT(!mnk_cache_make_keys(nullptr, caught.out()));
  caught.expect(__LINE__, missing("cache is missing"));
  EXPECT(!mnk_cache_make_values(nullptr, caught.out()));
  caught.expect(__LINE__, missing("cache is missing"));
  EXPECT(!mnk_encoder_append(encoder.get(), nullptr, nullptr, nullptr, 0, caught.out()));
  caught.expect(__LINE__, missing("cache is missing"));
  EXPECT(!mnk_encoder_append_rows(nullptr, nullptr, nullptr, nullptr, nullptr, 0, caught.out()));
  caught.expect(__LINE__, missing("encoder is missing"));
  EXPECT(!mnk_cache_truncate(nullptr, 0, 0, caught.out()));
  caught.expect(__LINE__, missing("cache is missing"));
  EXPECT(!mnk_cache_reset_sequence(nullptr, 0, caught.out()));
  caught.expect(__LINE__, missing("cache is missing"));
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
  const WriteScene scene;
  const auto encoder = makeEncoder(scene.device.get());
  Caught caught;
  const auto wrong = [](std::string_view what) {
    return ExpectedError{
        .op = "C API", .what = what, .got = "size ", .expected = "size ", .fix = "Set size to sizeof("};
  };
  mnk_dispatch dispatch = emptyDispatch("f");
  mnk_kv_cache_write write = scene.write;
  mnk_kv_cache_write nested = scene.write;
  mnk_cache_descriptor descriptor{};
  mnk_host_options options{};
  const auto sizesAround = [](size_t right) { return std::vector<size_t>{0, right - 1, 2 * right + 1, SIZE_MAX}; };
  for (const size_t size : sizesAround(sizeof dispatch)) {
    dispatch.size = size;
    EXPECT(!mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()));
    caught.expect(__LINE__, wrong("mnk_dispatch has the wrong size"));
  }
  for (const size_t size : sizesAround(sizeof write)) {
    write.size = size;
    EXPECT(!mnk_encoder_kv_cache_write(encoder.get(), &write, caught.out()));
    caught.expect(__LINE__, wrong("mnk_kv_cache_write has the wrong size"));
  }
  // A view inside another struct cannot be longer either: everything behind it would have moved.
  for (const size_t size : {size_t{0}, sizeof nested.into - 1, sizeof nested.into + 8, SIZE_MAX}) {
    nested.into.size = size;
    EXPECT(!mnk_kv_cache_write_make_plan(&nested, caught.out()));
    caught.expect(__LINE__, wrong("mnk_kv_cache_view has the wrong size"));
  }
  for (const size_t size : sizesAround(sizeof descriptor)) {
    descriptor.size = size;
    EXPECT(!mnk_cache_make(scene.device.get(), &descriptor, caught.out()));
    caught.expect(__LINE__, wrong("mnk_cache_descriptor has the wrong size"));
  }
  for (const size_t size : sizesAround(sizeof options)) {
    options.size = size;
    EXPECT(!mnk_device_make_host(&options, caught.out()));
    caught.expect(__LINE__, wrong("mnk_host_options has the wrong size"));
  }
}

TEST(CApi, ALongerDescriptorIsAcceptedWhileItsUnknownPartIsZero) {
  const WriteScene scene;
  struct Longer {
    mnk_kv_cache_write known;
    uint64_t unknown;
  };
  // Exactly as long as it says, so that a sanitizer sees any read behind it.
  const auto longer = std::make_unique<Longer>(Longer{scene.write, 0});
  longer->known.size = sizeof(Longer);
  Caught caught;
  const Owned<mnk_plan> plan(mnk_kv_cache_write_make_plan(&longer->known, caught.out()), mnk_plan_release);
  EXPECT(plan && !caught.isSet());
  for (size_t byte = 0; byte < sizeof longer->unknown; ++byte) {
    longer->unknown = uint64_t{1} << (8 * byte);
    EXPECT(!mnk_kv_cache_write_make_plan(&longer->known, caught.out()));
    caught.expect(__LINE__, {.op = "C API", .what = "mnk_kv_cache_write has the wrong size"});
  }
}

TEST(CApi, NumbersThatNameNothingAreErrors) {
  const WriteScene scene;
  const auto encoder = makeEncoder(scene.device.get());
  Caught caught;
  const auto unknown = [](std::string_view what, std::string_view expected) {
    return ExpectedError{
        .op = "C API", .what = what, .got = "9", .expected = expected, .fix = "Use the constants of mnk.h."};
  };
  EXPECT(!mnk_tensor_make(scene.device.get(), number<mnk_dtype>(9), nullptr, 0, caught.out()));
  caught.expect(__LINE__, unknown("the number is not a dtype", "MNK_F32 to MNK_I32"));
  EXPECT(!mnk_tensor_make(scene.device.get(), number<mnk_dtype>(UINT32_MAX), nullptr, 0, caught.out()));
  EXPECT_EQ(mnk_dtype_size(number<mnk_dtype>(9)), 0u);
  EXPECT_EQ(std::string(mnk_dtype_name(number<mnk_dtype>(9))), "unknown dtype");

  mnk_kv_cache_write write = scene.write;
  write.source_layout = number<mnk_kv_layout>(9);
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(__LINE__, unknown("not a layout", "MNK_HEAD_MAJOR or MNK_TOKEN_MAJOR"));
  write = scene.write;
  write.into.layout = number<mnk_kv_layout>(9);
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(__LINE__, unknown("not a layout", "MNK_HEAD_MAJOR or MNK_TOKEN_MAJOR"));
  write = scene.write;
  write.into.wrap = number<mnk_kv_wrap>(9);
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(__LINE__, unknown("not a wrap", "MNK_LINEAR or MNK_RING"));

  const mnk_binding binding{0, scene.keys.get(), number<mnk_access>(9)};
  mnk_dispatch dispatch = emptyDispatch("kvCacheMove_2");
  dispatch.buffers = &binding;
  dispatch.buffer_count = 1;
  EXPECT(!mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()));
  caught.expect(__LINE__, unknown("the access of a binding is unknown", "MNK_READ, MNK_WRITE or MNK_READ_WRITE"));
  const mnk_constant constant{0, number<mnk_constant_type>(9), 0};
  dispatch = emptyDispatch("kvCacheMove_2");
  dispatch.constants = &constant;
  dispatch.constant_count = 1;
  EXPECT(!mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()));
  caught.expect(__LINE__, unknown("the type of a function constant is unknown", "MNK_CONSTANT_BOOL to"));

  mnk_cache_descriptor descriptor{};
  descriptor.size = sizeof descriptor;
  descriptor.dtype = number<mnk_dtype>(9);
  EXPECT(!mnk_cache_make(scene.device.get(), &descriptor, caught.out()));
  caught.expect(__LINE__, unknown("not a dtype", "MNK_F32 to MNK_I32"));
  descriptor.dtype = MNK_F16;
  descriptor.when_full = number<mnk_kv_wrap>(9);
  EXPECT(!mnk_cache_make(scene.device.get(), &descriptor, caught.out()));
  caught.expect(__LINE__, unknown("not a wrap", "MNK_LINEAR or MNK_RING"));
  mnk_host_options options{};
  options.size = sizeof options;
  for (const int32_t level : {-1, 99}) {
    options.level = level;
    EXPECT(!mnk_device_make_host(&options, caught.out()));
    caught.expect(__LINE__, {.code = ErrorCode::unsupported, .op = "Host device"});
  }
  EXPECT(!mnk_device_make_at(mnk_device_count(), caught.out()));
  caught.expect(__LINE__, {.op = "C API", .what = "there is no such device", .fix = "mnk_device_count"});
}

TEST(CApi, ListsThatAreMissingAreErrors) {
  const WriteScene scene;
  const auto encoder = makeEncoder(scene.device.get());
  Caught caught;
  const auto refuse = [&](int line, std::string_view what, auto change) {
    mnk_dispatch dispatch = emptyDispatch("kvCacheMove_2");
    change(dispatch);
    EXPECT(!mnk_encoder_dispatch(encoder.get(), &dispatch, caught.out()));
    caught.expect(line, missing(what));
  };
  refuse(__LINE__, "function", [](mnk_dispatch& d) { d.function = nullptr; });
  refuse(__LINE__, "buffers", [](mnk_dispatch& d) { d.buffer_count = 1; });
  refuse(__LINE__, "inlines", [](mnk_dispatch& d) { d.inline_count = 1; });
  refuse(__LINE__, "threadgroup_memory", [](mnk_dispatch& d) { d.threadgroup_memory_count = 1; });
  refuse(__LINE__, "constants", [](mnk_dispatch& d) { d.constant_count = 1; });
  static constexpr mnk_binding kNoTensor{};
  refuse(__LINE__, "the tensor of a binding", [](mnk_dispatch& d) { d.buffers = &kNoTensor, d.buffer_count = 1; });
  static constexpr mnk_inline_bytes kNoBytes{0, nullptr, 4};
  refuse(__LINE__, "inline bytes", [](mnk_dispatch& d) { d.inlines = &kNoBytes, d.inline_count = 1; });

  mnk_kv_cache_write write = scene.write;
  write.has_rows = true;
  write.sequences.list_count = 3;
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(__LINE__, missing("the list of rows"));
  write = scene.write;
  write.into.keys = nullptr;
  EXPECT(!mnk_kv_cache_write_make_plan(&write, caught.out()));
  caught.expect(__LINE__, missing("into.keys"));
  EXPECT(!mnk_tensor_read(scene.keys.get(), nullptr, 96, caught.out()));
  caught.expect(__LINE__, missing("into"));
  EXPECT(!mnk_tensor_write(scene.keys.get(), nullptr, 96, caught.out()));
  caught.expect(__LINE__, missing("from"));
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
  caught.expect(__LINE__, {.op = "Tensor", .what = "exactly", .got = "5 bytes", .expected = "6 bytes", .fix = "slice"});
}

// Ownership

namespace {

// Counts how often memory was given back.
struct Lent {
  std::vector<uint64_t> memory = std::vector<uint64_t>(8);
  int released = 0;

  static void release(void* context) { ++static_cast<Lent*>(context)->released; }
  Owned<mnk_tensor> wrap(mnk_device* device, mnk_dtype dtype, std::vector<uint64_t> shape, uint64_t offset,
                         mnk_error_out error) {
    return {mnk_tensor_make_wrapping(device, memory.data(), 64, dtype, shape.data(), shape.size(), offset, release,
                                     this, error),
            mnk_tensor_release};
  }
};

}  // namespace

TEST(CApi, WrappedMemoryIsReleasedOnceAfterItsLastUser) {
  const auto device = makeDevice();
  Lent lent;
  auto tensor = lent.wrap(device.get(), MNK_F32, {8}, 8, nullptr);
  EXPECT(tensor != nullptr);
  Owned<mnk_tensor> slice(mnk_tensor_make_slice(tensor.get(), 2, 1, nullptr), mnk_tensor_release);
  const float value = 5;
  EXPECT(mnk_tensor_write(slice.get(), &value, sizeof value, nullptr));
  float seen;
  std::memcpy(&seen, reinterpret_cast<std::byte*>(lent.memory.data()) + 16, sizeof seen);
  EXPECT_EQ(seen, 5.f);
  tensor.reset();
  EXPECT_EQ(lent.released, 0);
  slice.reset();
  EXPECT_EQ(lent.released, 1);
}

TEST(CApi, WrappedMemoryIsReleasedOnceOnEachFailure) {
  const auto device = makeDevice();
  struct Case {
    const char* name;
    Owned<mnk_tensor> (*make)(Lent&, mnk_device*, mnk_error_out);
  };
  const Case cases[] = {
      {"no device",
       [](Lent& lent, mnk_device*, mnk_error_out error) { return lent.wrap(nullptr, MNK_F32, {8}, 0, error); }},
      {"unknown dtype", [](Lent& lent, mnk_device* device,
                           mnk_error_out error) { return lent.wrap(device, number<mnk_dtype>(9), {8}, 0, error); }},
      {"too many extents",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         return lent.wrap(device, MNK_F32, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, error);
       }},
      {"overflowing shape",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         return lent.wrap(device, MNK_F32, {UINT64_MAX, 2}, 0, error);
       }},
      {"too long",
       [](Lent& lent, mnk_device* device, mnk_error_out error) { return lent.wrap(device, MNK_F32, {17}, 0, error); }},
      {"offset past the end",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         return lent.wrap(device, MNK_F32, {1}, UINT64_MAX - 3, error);
       }},
      {"misaligned",
       [](Lent& lent, mnk_device* device, mnk_error_out error) { return lent.wrap(device, MNK_F32, {4}, 2, error); }},
      {"no shape",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         return Owned<mnk_tensor>(mnk_tensor_make_wrapping(device, lent.memory.data(), 64, MNK_F32, nullptr, 2, 0,
                                                           Lent::release, &lent, error),
                                  mnk_tensor_release);
       }},
      {"no memory",
       [](Lent& lent, mnk_device* device, mnk_error_out error) {
         const uint64_t one = 1;
         return Owned<mnk_tensor>(
             mnk_tensor_make_wrapping(device, nullptr, 64, MNK_F32, &one, 1, 0, Lent::release, &lent, error),
             mnk_tensor_release);
       }},
  };
  for (const Case& one : cases) {
    Context context(one.name);
    Lent lent;
    Caught caught;
    EXPECT(!one.make(lent, device.get(), caught.out()));
    EXPECT(caught.isSet());
    EXPECT_EQ(lent.released, 1);
    EXPECT(!one.make(lent, device.get(), nullptr));
    EXPECT_EQ(lent.released, 2);
  }
}

TEST(CApi, WrappedMemoryNeedsNoReleaseFunction) {
  const auto device = makeDevice();
  Lent lent;
  const uint64_t eight = 8;
  const Owned<mnk_tensor> tensor(
      mnk_tensor_make_wrapping(device.get(), lent.memory.data(), 64, MNK_F32, &eight, 1, 0, nullptr, nullptr, nullptr),
      mnk_tensor_release);
  EXPECT(tensor != nullptr);
  EXPECT(
      !mnk_tensor_make_wrapping(device.get(), lent.memory.data(), 4, MNK_F32, &eight, 1, 0, nullptr, nullptr, nullptr));
}

TEST(CApi, ObjectsMayBeReleasedInAnyOrder) {
  WriteScene scene;
  Owned<mnk_encoder> encoder = makeEncoder(scene.device.get());
  Owned<mnk_plan> plan(mnk_kv_cache_write_make_plan(&scene.write, nullptr), mnk_plan_release);
  EXPECT(mnk_encoder_kv_cache_write(encoder.get(), &scene.write, nullptr));
  scene.device.reset();
  scene.keys.reset();
  scene.cache.reset();
  EXPECT_EQ(mnk_plan_dispatch_count(plan.get()), 1u);
  EXPECT_EQ(std::string(mnk_plan_dispatch(plan.get(), 0).function), "kvCacheMove_16");
  EXPECT_EQ(std::string(mnk_plan_dispatch(plan.get(), 1).function), "");
  Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr), mnk_completion_release);
  encoder.reset();
  EXPECT(mnk_completion_wait(done.get(), nullptr));
  EXPECT(mnk_completion_is_done(done.get()));
  EXPECT_EQ(mnk_completion_summary(done.get()).total.bytes_written, 96u);
  EXPECT_EQ(mnk_completion_counts(done.get(), "KVCacheWrite").dispatches, 1u);
  EXPECT_EQ(mnk_completion_counts(done.get(), "nothing").dispatches, 0u);
  EXPECT_EQ(mnk_completion_counts(done.get(), nullptr).dispatches, 0u);
  char* text = mnk_completion_copy_text(done.get());
  EXPECT(std::string(text).starts_with("1 dispatch, 0 barriers, 96 bytes read, 96 bytes written"));
  mnk_text_release(text);
}

TEST(CApi, TheCallbackRunsIfAndOnlyIfTheCommitSucceeds) {
  const auto device = makeDevice();
  const auto encoder = makeEncoder(device.get());
  struct Heard {
    std::atomic<int> calls = 0;
    std::atomic<bool> failed = false;
  } heard;
  const mnk_finished finished = [](void* context, const mnk_error* failure) {
    auto* heard = static_cast<Heard*>(context);
    heard->failed = failure != nullptr;
    ++heard->calls;
    heard->calls.notify_all();
  };
  {
    const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), finished, &heard, nullptr),
                                     mnk_completion_release);
    EXPECT(done && mnk_completion_wait(done.get(), nullptr));
  }
  heard.calls.wait(0);
  EXPECT_EQ(heard.calls.load(), 1);
  EXPECT(!heard.failed);
  Caught caught;
  EXPECT(!mnk_encoder_commit(encoder.get(), finished, &heard, caught.out()));
  caught.expect(__LINE__, {.op = "CommandEncoder", .what = "after it was committed", .got = "a committed encoder"});
  EXPECT(!mnk_encoder_barrier(encoder.get(), caught.out()));
  caught.expect(__LINE__, {.op = "CommandEncoder", .what = "after it was committed"});
  EXPECT_EQ(heard.calls.load(), 1);
}

TEST(CApi, ARefusedOpCarriesItsFourParts) {
  WriteScene scene;
  scene.write.position = 7;
  const auto encoder = makeEncoder(scene.device.get());
  Caught caught;
  EXPECT(!mnk_encoder_kv_cache_write(encoder.get(), &scene.write, caught.out()));
  caught.expect(__LINE__, {.op = "KVCacheWrite"});
  for (const auto part : {mnk_error_what, mnk_error_got, mnk_error_expected, mnk_error_fix}) {
    EXPECT(*part(caught.get()) != 0);
  }
  EXPECT(!mnk_error_is_retryable(caught.get()));
}

}  // namespace mnk::test
