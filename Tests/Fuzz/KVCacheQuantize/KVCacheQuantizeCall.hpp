// A KVCacheQuantize or a KVCacheDequantize in numbers, made by the generator and checked by the contract beside it.
#pragma once
#include <optional>
#include <vector>

#include "KVCacheWrite/KVCacheWriteCall.hpp"
#include "OpCase.hpp"

namespace mnk::fuzz {

// Keys or values of a quantized cache, but for their codes, which are the cache of a KVCacheWrite.
struct QuantizedPlaneSpec {
  mnk_kv_codec codec{};
  std::optional<TensorSpec> scales, means, channelScales;
};

struct KVCacheQuantizeSpec {
  bool isRead = false;  // a KVCacheDequantize: keys and values are what it reads into
  bool isNull = false;
  size_t size = 0;  // of the op's struct, and of the view inside it
  size_t viewSize = sizeof(mnk_quantized_kv_view);
  uint8_t tail = 0;
  KVCacheWriteSpec write;  // all that it shares with one; its own sizes are not used
  QuantizedPlaneSpec keys, values;
  std::optional<TensorSpec> counts, probe;
  mnk_kv_quantize_options options{};
  mnk_kv_domain domain{};

  size_t ownSize() const { return isRead ? sizeof(mnk_kv_cache_dequantize) : sizeof(mnk_kv_cache_quantize); }
  std::string text() const;
};

// Regions after those of a KVCacheWrite. Both calls of a case store codes in the same ones. The scales of the first
// have regions of their own: a part of one, whose last digit is open, must not be overwritten. Only the second has the
// others.
struct QuantizedRegions {
  static constexpr uint32_t kKeyScales = 10, kValueScales = 11, kKeyMeans = 12, kValueMeans = 13, kChannelScales = 14,
                            kCounts = 15, kProbe = 16, kFirstKeyScales = 17, kFirstValueScales = 18;
};
std::vector<std::optional<TensorSpec>*> tensorsOf(KVCacheQuantizeSpec& spec);

KVCacheQuantizeSpec validQuantize(Seeded& random, Bank bank);
KVCacheQuantizeSpec validDequantize(Seeded& random, Bank bank);
// After one to three mutations; some leave it valid.
KVCacheQuantizeSpec mutated(KVCacheQuantizeSpec spec, Seeded& random);

// The contract of KVCacheQuantize.hpp, KVCacheDequantize.hpp, QuantizedKVCacheView.hpp and mnk_kv_quantize.h restated
// over plain numbers: what the error must say, or nothing.
std::string refusalOf(const KVCacheQuantizeSpec& spec);
// The parts of it that all ops share which use a quantized cache: what the C API refuses of a view, whose field has
// this name, and the rules of its memory.
std::string refusalOfView(const KVCacheQuantizeSpec& spec, const std::string& name);
std::string refusalOfCache(const KVCacheQuantizeSpec& spec);
// Makes a cache that is right but for one plane of elements one that lacks scales: what is stored and read beside codes
// is for lists of cases to say.
void avoidMixed(KVCacheQuantizeSpec& spec);
// The elements of a vector whose codes take so many bytes; 0 where the codec has none.
uint64_t headDimOf(const mnk_kv_codec& codec, uint64_t codeBytes);
// All tensors that a call uses.
std::vector<const TensorSpec*> usedTensors(const KVCacheQuantizeSpec& spec);

// The parts of a call that are the same for both ops.
struct QuantizedPlaneOperands {
  const TensorSpec* vectors;
  mnk_heads_view places;  // of the vectors
  const TensorSpec* codes;
  const QuantizedPlaneSpec* plane;
  uint64_t headDim;
};
// Keys, values or both, of a valid spec.
std::vector<QuantizedPlaneOperands> planesOf(const KVCacheQuantizeSpec& spec);
mnk_quantized_kv_view madeView(const KVCacheQuantizeSpec& spec, Arena& arena, Seeded& random);
// The place of a vector among those of the source or of the cache, counted in vectors.
uint64_t slotIndex(const TensorSpec& codes, mnk_kv_layout layout, uint64_t sequence, uint64_t slot, uint64_t head);
// Elements of a tensor of floats in the arena's image.
std::vector<double> valuesOf(Arena& arena, const TensorSpec& tensor);
// Vectors of many sizes; some are zero, and some have an element that is no number.
void fillVectors(Arena& arena, Seeded& random, const TensorSpec& vectors);
// Everyday numbers, none of them 0.
void fillFactors(Arena& arena, Seeded& random, const QuantizedPlaneSpec& plane);

Target kvCacheQuantizeTarget();
Target kvCacheDequantizeTarget();

}  // namespace mnk::fuzz
