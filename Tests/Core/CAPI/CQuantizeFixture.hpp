// A quantized cache and vectors for it through the C API, made so that scales tell which vector lies where.
#pragma once
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "CAPI/CApiHarness.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::test {

inline constexpr uint64_t kHeads = 2, kCapacity = 5, kTokens = 3, kHeadDim = 32, kValueHeadDim = 64;

// Vectors that differ in their size alone, which their scales tell: token t of head h is 1 + 2t + h times the first.
inline std::vector<float> sizedVectors(uint64_t headDim) {
  std::vector<float> elements;
  for (uint64_t vector = 0; vector < kTokens * kHeads; ++vector) {
    for (uint64_t e = 0; e < headDim; ++e) {
      elements.push_back(static_cast<float>(vector + 1) * static_cast<float>(static_cast<int>(e * 37 % 64) - 31));
    }
  }
  return elements;
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
  const Owned<mnk_completion> done(mnk_encoder_commit(encoder.get(), nullptr, nullptr, nullptr),
                                   mnk_completion_release);
  EXPECT(mnk_completion_wait(done.get(), nullptr));
}

// Keys of 4 bits and values of 8, turbo, in a cache of two heads.
struct QuantizeFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> keys = makeTensor(device.get(), MNK_F32, {kTokens, kHeads, kHeadDim});
  Owned<mnk_tensor> values = makeTensor(device.get(), MNK_F32, {kTokens, kHeads, kValueHeadDim});
  Owned<mnk_tensor> keyCodes = makeTensor(device.get(), MNK_U8, {2, kHeads, kCapacity, kHeadDim / 2});
  Owned<mnk_tensor> keyScales = makeTensor(device.get(), MNK_F16, {2, kHeads, kCapacity});
  Owned<mnk_tensor> valueCodes = makeTensor(device.get(), MNK_U8, {2, kHeads, kCapacity, kValueHeadDim});
  Owned<mnk_tensor> valueScales = makeTensor(device.get(), MNK_F16, {2, kHeads, kCapacity});
  mnk_kv_cache_quantize op = sound();

  mnk_kv_cache_quantize sound() const {
    write(keys, sizedVectors(kHeadDim).data());
    write(values, sizedVectors(kValueHeadDim).data());
    mnk_kv_cache_quantize op{};
    op.size = sizeof op;
    op.keys = keys.get();
    op.values = values.get();
    op.source_layout = MNK_TOKEN_MAJOR;
    op.into.size = sizeof op.into;
    op.into.keys = plane(4, keyCodes, keyScales);
    op.into.values = plane(8, valueCodes, valueScales);
    return op;
  }

  static mnk_quantized_kv_plane plane(uint32_t bits, const Owned<mnk_tensor>& codes, const Owned<mnk_tensor>& scales) {
    mnk_quantized_kv_plane plane{};
    plane.codec.bits = bits;
    plane.codes = codes.get();
    plane.scales = scales.get();
    return plane;
  }

  void run() const { runOp(device.get(), op, mnk_encoder_kv_cache_quantize); }

  // The scale of the first of the sized vectors, which is stored and taken away again.
  double unitOf(const Owned<mnk_tensor>& scales) {
    op.has_tokens = true, op.tokens = 1;
    run();
    op.has_tokens = false, op.tokens = 0;
    const double unit = valueOf(DType::f16, contents<uint16_t>(scales)[0]);
    for (const auto* tensor : {&keyCodes, &keyScales, &valueCodes, &valueScales}) clear(*tensor);
    return unit;
  }
  double keyUnit = unitOf(keyScales);
  double valueUnit = unitOf(valueScales);

  static void clear(const Owned<mnk_tensor>& tensor) {
    const std::vector<std::byte> none(mnk_tensor_byte_count(tensor.get()));
    write(tensor, none.data());
  }

  // Which of the sized vectors lies in each slot; 0 where there is none.
  static std::vector<int> vectorsIn(const Owned<mnk_tensor>& scales, double unit) {
    std::vector<int> vectors;
    for (const uint16_t bits : contents<uint16_t>(scales)) {
      vectors.push_back(static_cast<int>(std::lround(valueOf(DType::f16, bits) / unit)));
    }
    return vectors;
  }
  std::vector<int> storedKeys() const {
    run();
    const std::vector<int> vectors = vectorsIn(keyScales, keyUnit);
    clear(keyScales);
    return vectors;
  }
};

}  // namespace mnk::test
