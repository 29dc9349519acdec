// The memory of a cache, dense, quantized or mixed, and which op writes and reads it.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "Ops/Common/CacheAddressing.hpp"

namespace mnk {

class CacheStorage {
 public:
  // Copies means and channel scales into private memory and updates the descriptor to refer to the copies.
  static Result<CacheStorage> make(const std::shared_ptr<Device>& device, AttentionCacheDescriptor& descriptor);

  // The planes of keys and values: elements or codes.
  const KVCacheView& view() const { return view_; }
  const std::optional<QuantizedKVCacheView>& quantizedView() const { return quantized_; }
  // What attention reads.
  std::variant<KVCacheView, QuantizedKVCacheView> attended() const {
    if (quantized_) return *quantized_;
    return view_;
  }
  // What a file holds of each slot, in this order; what is dense has no scales.
  enum Plane : uint8_t { keys, keyScales, values, valueScales };
  using Planes = std::array<std::optional<Tensor>, 4>;
  Planes planes() const;
  uint64_t bytes() const;

  // The op that appends tokens to one sequence.
  using Append = std::variant<KVCacheWrite, KVCacheQuantize>;
  Append append(const HeadsView& keys, const HeadsView& values, uint32_t sequence = 0, uint64_t position = 0) const;
  // The ops that store each token in the listed slot of the listed sequence: one, unless the list is longer than an op
  // can take.
  std::vector<Append> appendRows(const HeadsView& keys, const HeadsView& values, std::span<const uint32_t> sequences,
                                 std::span<const uint32_t> slots) const;
  // Consecutive sequences of `length` positions each, which hold their pinned positions and those from `oldest` on.
  struct Copied {
    uint64_t source = 0, target = 0, sequences = 1;
    uint64_t length = 0, oldest = 0;
  };
  // Copies them byte for byte from storage of the same shape, also of this one, whose capacity may differ.
  Result<Plan> planCopy(const CacheStorage& from, const Copied& copied) const;
  // Quantizes slots of a dense cache with the same extents, for sequences that hold the same slots.
  Result<Plan> planQuantize(const KVCacheView& source, uint64_t sequence, uint64_t sequences,
                            const SlotRun& slots) const;
  // Whether quantization depends on the head (means or channel scales), so that several sequences cannot be viewed as
  // one sequence with more heads.
  bool hasChannels() const;
  Result<Plan> planDequantize(const std::optional<Tensor>& keys, const std::optional<Tensor>& values, uint32_t sequence,
                              uint64_t position, KVDomain domain) const;

 private:
  KVCacheView view_;
  std::optional<QuantizedKVCacheView> quantized_;
  KVQuantizeOptions options_;
};

// Plans appends. With a rotation, they also rotate its keys, which they store, and its queries, as RotaryAppend
// describes; `firstToken` is the index of the first token in a tensor of positions.
Result<Plan> planAppends(std::span<const CacheStorage::Append> appends, const std::optional<MultiRoPE>& rotation = {},
                         uint64_t firstToken = 0);

// Bytes of one slot of one head in each plane, 0 for a plane that does not exist. Needs no allocated memory.
// valueHeadDim must not be 0.
std::array<uint64_t, 4> slotBytes(const AttentionCacheDescriptor& descriptor);

}  // namespace mnk
