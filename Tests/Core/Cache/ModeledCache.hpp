// A cache and what it must hold.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "Cache/ModeledSlots.hpp"
#include "Ops/FlashDecode/AttentionFixture.hpp"
#include "Runtime/FloatElements.hpp"

namespace mnk::test {

// A storage that has the cache's head dims, with any options.
inline KVQuantizedStorage anyStorage(const std::shared_ptr<Device>& device, Seeded& random,
                                     const AttentionCacheDescriptor& d) {
  using enum KVCodec::Name;
  if (d.latentDim != 0) {
    return {
        .keyBits = 5, .valueBits = 8, .planes = oneOf(random, {KVQuantizedPlanes::both, KVQuantizedPlanes::values})};
  }
  KVQuantizedStorage storage{.planes = static_cast<KVQuantizedPlanes>(coin(random, 1, 2) ? random.below(3) : 0)};
  const bool canBeMlx1 = std::has_single_bit(d.headDim) && std::has_single_bit(std::max(d.valueHeadDim, 1u));
  if (canBeMlx1 && coin(random, 1, 3)) storage.codec = mlx1;
  if (d.headDim == 256) storage.codec = oneOf(random, {turbo, mlx1, mlx1Unrotated, mlx1Affine4});
  if (storage.codec == mlx1 && d.headDim == 256) storage.keyBits = storage.valueBits = oneOf(random, {4u, 5u, 6u, 8u});
  if (storage.codec == mlx1Unrotated) storage.keyBits = storage.valueBits = 8;
  if (storage.codec != turbo) return storage;
  storage.keyBits = oneOf(random, {2u, 5u, 8u});  // few, because each takes kernels of its own
  storage.valueBits = 10 - storage.keyBits;
  if (coin(random, 1, 3)) {
    storage.options = {.candidates = 1,
                       .keyScale = KVScaleRule::leastSquares,
                       .valueScale = KVScaleRule::unbiased,
                       .nonFinite = KVNonFinite::zero};
  }
  const auto channels = [&](float constant, uint32_t headDim) {
    return constants(device, constant, d.kvHeads, headDim);
  };
  if (storage.hasQuantizedKeys() && coin(random, 1, 3)) storage.keyMeans = channels(0.25f, d.headDim);
  if (storage.hasQuantizedKeys() && coin(random, 1, 3)) storage.keyChannelScales = channels(2, d.headDim);
  if (storage.hasQuantizedValues() && coin(random, 1, 3)) storage.valueMeans = channels(-0.5f, d.valueHeadDim);
  return storage;
}

inline AttentionCacheDescriptor anyDescriptor(const std::shared_ptr<Device>& device, Seeded& random) {
  const auto pinned = static_cast<uint32_t>(random.below(2) * random.below(4));
  const bool isRing = random.below(5) != 0;
  AttentionCacheDescriptor d{.kvHeads = 2,
                             .headDim = 8,
                             .valueHeadDim = 16,
                             .capacity = static_cast<uint32_t>(pinned + 1 + random.below(isRing ? 9 : 30)),
                             .sequences = 3,
                             .dtype = DType::f32,
                             .whenFull = isRing ? KVWrap::ring : KVWrap::linear,
                             .pinned = isRing ? pinned : 0};
  const uint64_t kind = random.below(16);
  if (kind < 2) d.headDim = 3, d.valueHeadDim = 5, d.isStorageOnly = true;
  if (kind >= 2 && kind < 10) d.headDim = 32, d.valueHeadDim = 64;
  if (kind >= 2 && kind < 10) d.dtype = oneOf(random, {DType::f32, DType::f16, DType::bf16});
  if (kind == 10) d.headDim = d.valueHeadDim = 256;
  if (kind == 11) d.kvHeads = 1, d.headDim = 64, d.valueHeadDim = d.latentDim = 512;
  if ((kind >= 5 && kind < 11) || (kind == 11 && coin(random, 1, 2))) d.quantized = anyStorage(device, random, d);
  if (isRing && coin(random, 1, 8)) {
    d.capacity = 0;
    d.slidingWindow = SlidingWindow{.window = static_cast<uint32_t>(1 + random.below(6)),
                                    .maxRows = static_cast<uint32_t>(1 + random.below(4)),
                                    .maxDraft = static_cast<uint32_t>(random.below(4))};
  }
  return d;
}

inline ModeledSlots slotsOf(const AttentionCacheDescriptor& d) {
  return {.capacity = d.capacity, .pinned = d.pinned, .isRing = d.whenFull == KVWrap::ring};
}

class ModeledCache {
 public:
  explicit ModeledCache(AttentionCache of)
      : cache(std::move(of)), slots(slotsOf(cache.descriptor())), sequences(cache.descriptor().sequences) {}

  const AttentionCacheDescriptor& descriptor() const { return cache.descriptor(); }
  uint64_t next(uint32_t sequence) const { return sequences[sequence].next(); }
  uint64_t window() const { return descriptor().slidingWindow ? descriptor().slidingWindow->window : 0; }

  // Appends tokens of small numbers, and waits.
  void appendNow(const std::shared_ptr<Device>& device, Seeded& random, uint64_t count, uint32_t sequence) {
    const AttentionCacheDescriptor& d = descriptor();
    const std::vector<float> keys = smallNumbers(random, count * d.kvHeads * d.headDim);
    const std::vector<float> values = smallNumbers(random, count * d.kvHeads * d.valueHeadDim);
    REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) {
      return cache.append(encoder, numbers(device, keys, REQUIRE(Shape::make({count, d.kvHeads, d.headDim}))),
                          numbers(device, values, REQUIRE(Shape::make({count, d.kvHeads, d.valueHeadDim}))), sequence);
    }));
    for (ModeledToken& token : stored(device, keys, values)) slots.append(sequences[sequence], std::move(token));
  }

  // How this storage holds tokens: as another cache does in its first slots.
  std::vector<ModeledToken> stored(const std::shared_ptr<Device>& device, const std::vector<float>& keys,
                                   const std::vector<float>& values) const {
    AttentionCacheDescriptor d = descriptor();
    const uint64_t keyWidth = uint64_t{d.kvHeads} * d.headDim, valueWidth = uint64_t{d.kvHeads} * d.valueHeadDim;
    const uint64_t count = keys.size() / keyWidth;
    if (count == 0) return {};
    d.capacity = static_cast<uint32_t>(count);
    d.sequences = 1, d.pinned = 0, d.whenFull = KVWrap::linear;
    d.slidingWindow.reset();
    AttentionCache plain = makeCache(device, d);
    const Tensor tokenKeys = numbers(device, keys, REQUIRE(Shape::make({count, d.kvHeads, d.headDim})));
    const Tensor tokenValues = numbers(device, values, REQUIRE(Shape::make({count, d.kvHeads, d.valueHeadDim})));
    const auto represented = [&](const Tensor& numbers) {
      return REQUIRE(Tensor::zeros(device, d.quantized ? DType::f32 : d.dtype, numbers.shape()));
    };
    const Tensor readKeys = represented(tokenKeys), readValues = represented(tokenValues);
    REQUIRE(CommandEncoder::run(device, [&](CommandEncoder& encoder) -> Result<void> {
      if (auto done = plain.append(encoder, tokenKeys, tokenValues, 0); !done || !d.quantized) return done;
      return plain.dequantize(encoder, readKeys, readValues, 0, 0);
    }));
    if (!d.quantized) {
      REQUIRE(writeFloats(readKeys, keys));
      REQUIRE(writeFloats(readValues, values));
    }
    std::vector<float> allKeys(keys.size()), allValues(values.size());
    REQUIRE(readFloats(readKeys, allKeys));
    REQUIRE(readFloats(readValues, allValues));
    expectClose(allKeys, keys, d.quantized && d.quantized->hasQuantizedKeys() ? d.quantized->keyBits : 0);
    expectClose(allValues, values, d.quantized && d.quantized->hasQuantizedValues() ? d.quantized->valueBits : 0);
    const CacheBytes bytes(plain);
    std::vector<ModeledToken> tokens;
    for (uint64_t i = 0; i < count; ++i) {
      const auto key = allKeys.begin() + static_cast<int64_t>(i * keyWidth);
      const auto value = allValues.begin() + static_cast<int64_t>(i * valueWidth);
      tokens.push_back({.bytes = bytes.ofSlot(0, i),
                        .key = {key, key + static_cast<int64_t>(keyWidth)},
                        .value = {value, value + static_cast<int64_t>(valueWidth)}});
    }
    return tokens;
  }

  bool canCut(const ModeledSequence& sequence, uint64_t position) const {
    return slots.canCut(sequence, position) && slots.servesAfterCut(sequence, position, window());
  }

  // Compares what can be read, and where sequences stand.
  void check() const {
    checkPositions();
    const CacheBytes bytes(cache);
    for (uint32_t sequence = 0; sequence < sequences.size(); ++sequence) {
      const ModeledSequence& expected = sequences[sequence];
      for (const auto& [slot, position] : expected.positionInSlot) {
        if (position >= expected.next()) continue;
        EXPECT_EQ(cache.view().slotOf(position), slot);
        EXPECT(bytes.ofSlot(sequence, slot) == expected.tokens[position].bytes);
      }
      EXPECT_EQ(*cache.count(sequence), expected.count());
    }
  }
  void checkPositions() const {
    for (uint32_t sequence = 0; sequence < sequences.size(); ++sequence) {
      EXPECT_EQ(*cache.nextPosition(sequence), next(sequence));
      EXPECT(!cache.isSuspect(sequence));
    }
  }

  AttentionCache cache;
  ModeledSlots slots;
  std::vector<ModeledSequence> sequences;

 private:
  // A bit more divides the squared error by about 4. Dense elements are at most rounded to bf16.
  static void expectClose(const std::vector<float>& got, const std::vector<float>& numbers, uint32_t bits) {
    double wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) wrong += (got[i] - numbers[i]) * (got[i] - numbers[i]);
    const double ofOne = bits == 0 ? 1e-5 : std::pow(4, 1 - static_cast<int>(bits));
    EXPECT(wrong < ofOne * static_cast<double>(numbers.size()));
  }
};

}  // namespace mnk::test
