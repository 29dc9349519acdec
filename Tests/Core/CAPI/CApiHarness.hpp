// The C API as seen from C++ tests: handles that release themselves, and errors that are compared by their parts.
#pragma once
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "Harness/Check.hpp"
#include "Harness/Golden.hpp"
#include "MLXNativeKernels/mnk.h"

// Tests also pass NULL where the header forbids it.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

template <typename Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

inline Owned<mnk_device> makeDevice() {
  return {mnk_device_make_default(nullptr), mnk_device_release};
}
inline Owned<mnk_tensor> makeTensor(mnk_device* device, mnk_dtype dtype, std::vector<uint64_t> shape) {
  return {mnk_tensor_make(device, dtype, shape.data(), shape.size(), nullptr), mnk_tensor_release};
}
inline Owned<mnk_encoder> makeEncoder(mnk_device* device) {
  return {mnk_encoder_make(device, nullptr, nullptr), mnk_encoder_release};
}

inline mnk_sequence_state sequenceOf(const mnk_cache* cache, uint32_t sequence) {
  mnk_sequence_state state{};
  EXPECT(mnk_cache_get_sequence(cache, sequence, &state, nullptr));
  return state;
}
inline uint64_t nextPosition(const mnk_cache* cache, uint32_t sequence) {
  return sequenceOf(cache, sequence).next_position;
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
  void expect(const ExpectedError& expected, std::source_location at = std::source_location::current()) const {
    const int line = static_cast<int>(at.line());
    if (!error_) return fail(at.file_name(), line, fmt::format("no error, expected: {}", expected.what));
    const Error error{.code = static_cast<ErrorCode>(mnk_error_get_code(error_)),
                      .op = mnk_error_op(error_),
                      .what = mnk_error_what(error_),
                      .got = mnk_error_got(error_),
                      .expected = mnk_error_expected(error_),
                      .fix = mnk_error_fix(error_)};
    expectError(at.file_name(), line, "error", &error, expected);
    expectEqual(at.file_name(), line, "message", std::string(mnk_error_message(error_)), error.message());
  }

 private:
  mnk_error* error_ = nullptr;
};

// Calls that fail: Refusals no; no(call(…, no.out())). Their errors are lines of Refusals.inc that start with the name
// of the test.
class Refusals {
 public:
  explicit Refusals(std::source_location where = std::source_location::current());
  mnk_error_out out() { return caught_.out(); }
  template <typename Result>
  void operator()(Result result, std::source_location at = std::source_location::current()) {
    add(!result, at);
  }

 private:
  void add(bool isRefused, std::source_location at);

  Caught caught_;
  GoldenErrors errors_;
};

// Appends keys and values to one sequence.
inline bool append(mnk_encoder* encoder, mnk_cache* cache, mnk_tensor* keys, mnk_tensor* values, uint32_t sequence) {
  const mnk_cache_step step{.keys = {.tensor = keys, .layout = MNK_KV_LAYOUT_TOKEN_MAJOR},
                            .values = {.tensor = values, .layout = MNK_KV_LAYOUT_TOKEN_MAJOR},
                            .sequences = &sequence,
                            .sequence_count = 1};
  return mnk_encoder_append(encoder, cache, &step, nullptr);
}

// Waits for what an encoder holds.
inline void commit(const Owned<mnk_encoder>& encoder) {
  const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                   mnk_completion_release);
  EXPECT(mnk_completion_wait(done.get(), nullptr));
}

template <typename T>
std::vector<T> contents(const Owned<mnk_tensor>& tensor) {
  std::vector<T> elements(mnk_tensor_byte_count(tensor.get()) / sizeof(T));
  EXPECT(mnk_tensor_read(tensor.get(), elements.data(), mnk_tensor_byte_count(tensor.get()), nullptr));
  return elements;
}

inline void write(const Owned<mnk_tensor>& tensor, const void* bytes) {
  EXPECT(mnk_tensor_write(tensor.get(), bytes, mnk_tensor_byte_count(tensor.get()), nullptr));
}

template <typename Op>
void runOp(mnk_device* device, const Op& op, bool (*encode)(mnk_encoder*, const Op*, mnk_error_out)) {
  const auto encoder = makeEncoder(device);
  Caught caught;
  if (!encode(encoder.get(), &op, caught.out())) {
    fail(__FILE__, __LINE__, mnk_error_message(caught.get()));
    throw Stop{};
  }
  commit(encoder);
}

// A cache, keys for it, and a write of them.
struct WriteFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> keys = makeTensor(device.get(), MNK_F32, {3, 2, 4});
  Owned<mnk_tensor> cache = makeTensor(device.get(), MNK_F32, {2, 8, 4});
  mnk_kv_cache_write write{};

  WriteFixture() {
    write.keys.tensor = keys.get();
    write.into.keys = cache.get();
  }
};

// A number that the enum may not name.
template <typename Enum>
Enum number(uint32_t value) {
  return static_cast<Enum>(value);
}

}  // namespace mnk::test
