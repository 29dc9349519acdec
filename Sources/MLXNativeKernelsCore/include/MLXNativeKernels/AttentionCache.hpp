// Keys and values of past tokens, with the position of each sequence. `append` writes at the next position and
// advances it when the encoder is committed; an encoder that is dropped or refused advances nothing. When
// committed work fails on the device, the sequences it appended to are suspect until they are truncated to where that
// work began, or reset.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/KVCacheView.hpp"

namespace mnk {

struct AttentionCacheDescriptor {
  uint32_t kvHeads = 0;
  uint32_t headDim = 0;
  uint32_t valueHeadDim = 0;  // 0: as headDim
  uint32_t capacity = 0;      // slots of one sequence
  uint32_t sequences = 1;
  DType dtype = DType::f16;        // f32, f16 or bf16
  KVWrap whenFull = KVWrap::ring;  // overwrite the oldest, or fail
  uint32_t pinned = 0;             // first positions that a ring never overwrites
};

class AttentionCache {
 public:
  static Result<AttentionCache> make(const std::shared_ptr<Device>& device, const AttentionCacheDescriptor& descriptor);

  const AttentionCacheDescriptor& descriptor() const;
  KVCacheView view() const;
  uint64_t bytes() const;  // of keys and values together

  // State of committed work. An unknown sequence reads as empty.
  uint64_t nextPosition(uint32_t sequence = 0) const;
  uint64_t count(uint32_t sequence = 0) const;  // positions that can be attended to
  bool isSuspect(uint32_t sequence = 0) const;

  // Keys and values: [tokens, kvHeads, headDim], or [kvHeads, headDim] for one token, for one sequence.
  Result<void> append(CommandEncoder& encoder, const Tensor& keys, const Tensor& values, uint32_t sequence = 0);
  // One token for each listed sequence, in the order of the list.
  Result<void> append(CommandEncoder& encoder, const Tensor& keys, const Tensor& values,
                      std::span<const uint32_t> sequences);

  // Forgets the tokens at `position` and after it. Positions that a ring has overwritten cannot come back.
  Result<void> truncate(uint64_t position, uint32_t sequence = 0);
  Result<void> reset(uint32_t sequence);
  void reset();

 private:
  AttentionCache() = default;

  struct State;
  struct Appending;
  Result<void> checkSequence(uint32_t sequence) const;
  Result<Plan> planRows(const Tensor& keys, const Tensor& values, std::span<const uint32_t> sequences,
                        std::span<const uint32_t> slots) const;
  Result<Appending*> appending(CommandEncoder& encoder, std::span<const uint32_t> sequences);

  std::shared_ptr<State> state_;
};

}  // namespace mnk
