// Ops as an encoder repeats them at other positions.
#pragma once
#include <optional>

#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantize.hpp"
#include "Ops/MultiRoPE/MultiRoPE.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"
#include "Runtime/RepeatedOp.hpp"

namespace mnk {

class RepeatedWrite final : public RepeatedOp {
 public:
  explicit RepeatedWrite(const KVCacheWrite& op) : op_(op) {}

  std::string_view name() const override { return KVCacheWrite::name; }
  Result<Plan> plan(Device*) const override { return mnk::plan(op_); }
  bool describe(OpForm& form) const override;
  void addPositions(OpPositions& positions) const override { addWritePositions(positions, op_); }
  Result<void> refine(Device&, OpForm&) override;
  void patch(size_t, Dispatch& dispatch) const override;

 private:
  const KVCacheWrite& op_;
  Placement placement_;
};

class RepeatedQuantize final : public RepeatedOp {
 public:
  explicit RepeatedQuantize(const KVCacheQuantize& op) : op_(op) {}

  std::string_view name() const override { return KVCacheQuantize::name; }
  Result<Plan> plan(Device*) const override { return mnk::plan(op_); }
  bool describe(OpForm& form) const override;
  void addPositions(OpPositions& positions) const override { addWritePositions(positions, op_); }
  Result<void> refine(Device&, OpForm&) override;
  void patch(size_t, Dispatch& dispatch) const override;

 private:
  const KVCacheQuantize& op_;
  // Known once the op is refined.
  KVCacheWrite addresses_;
  Placement placement_;
};

// A hash of all that determines the angles of a position.
uint64_t hashOf(const RotaryEmbedding& rotary);
// Adds what determines the angles: the embedding, and the kinds of positions and offsets without their values.
void describeAngles(const MultiRoPE& op, const RotaryIndices& indices, OpForm& form);
// Adds the values of positions and offsets that are not in tensors.
void addNumbers(OpPositions& positions, const RotaryPositions& of);
void addNumbers(OpPositions& positions, const std::optional<RotaryOffsets>& offsets);
// Patches the position values in the inline parameters of the dispatch.
void patchPositions(const MultiRoPE& op, MultiRoPEParams& params);
void patchNumbers(const MultiRoPE& op, const RotaryIndices& indices, Dispatch& dispatch);

class RepeatedRotaryAppend final : public RepeatedOp {
 public:
  // `append` stores rotation.keys, and `firstToken` is the index of the first token in a tensor of positions.
  RepeatedRotaryAppend(const MultiRoPE& rotation, uint64_t firstToken, const RotaryAppend::Append& append);

  std::string_view name() const override { return RotaryAppend::name; }
  Result<Plan> plan(Device*) const override {
    return mnk::plan(RotaryAppend{.rotation = rotation_, .firstToken = firstToken_, .append = append_});
  }
  bool describe(OpForm& form) const override;
  void addPositions(OpPositions& positions) const override;
  Result<void> refine(Device& device, OpForm& form) override;
  void patch(size_t index, Dispatch& dispatch) const override;

 private:
  const MultiRoPE& rotation_;
  uint64_t firstToken_;
  const RotaryAppend::Append& append_;
  const KVCacheWrite* dense_;                 // null where the cache is quantized
  std::optional<RepeatedQuantize> quantize_;  // where it is
  Placement placement_;
};

void addAttended(OpPositions& positions, const AttendedSequence& attended);

// Sequences grow, and with them the keys that are read and the number of splits.
class RepeatedAttention final : public RepeatedOp {
 public:
  // Uses `queries`, which an earlier dispatch of the plan stores in scratch memory, or else the op's queries.
  explicit RepeatedAttention(const FlashDecode& op, const std::optional<ScratchQueries>& queries = {});
  RepeatedAttention(const RepeatedAttention&) = delete;  // the layout refers to the shape
  RepeatedAttention& operator=(const RepeatedAttention&) = delete;

  std::string_view name() const override { return FlashDecode::name; }
  Result<Plan> plan(Device* device) const override;
  bool describe(OpForm& form) const override;
  void addPositions(OpPositions& positions) const override;
  Result<void> refine(Device& device, OpForm& form) override;
  void patch(size_t index, Dispatch& dispatch) const override;

 private:
  const FlashDecode& op_;
  std::optional<ScratchQueries> queries_;
  std::optional<AttentionShape> shape_;  // once refined, as is the layout
  FlashDecodeLayout layout_;
};

}  // namespace mnk
