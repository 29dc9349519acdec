// FlashDecode, repeated: sequences grow, and with them the keys that are read and the number of splits.
#pragma once
#include <optional>

#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Runtime/RepeatedOp.hpp"

namespace mnk {

inline void addAttended(OpPositions& positions, const AttendedSequence& attended) {
  positions.add(attended.sequence, attended.length, attended.highest);
  if (attended.position) positions.add(*attended.position);  // the form says which have one
}

class RepeatedAttention final : public RepeatedOp {
 public:
  // Uses `queries`, which an earlier dispatch of the plan stores in scratch memory, or else the op's queries.
  explicit RepeatedAttention(const FlashDecode& op, const std::optional<ScratchQueries>& queries = {})
      : op_(op), queries_(queries) {}
  RepeatedAttention(const RepeatedAttention&) = delete;  // the layout refers to the shape
  RepeatedAttention& operator=(const RepeatedAttention&) = delete;

  std::string_view name() const override { return FlashDecode::name; }
  Result<Plan> plan(Device* device) const override { return mnk::plan(op_, queries_, device); }
  bool describe(OpForm& form) const override;
  void addPositions(OpPositions& positions) const override {
    for (const AttendedSequence& each : op_.sequences) addAttended(positions, each);
  }
  Result<void> refine(Device& device, OpForm& form) override;
  void patch(size_t index, Dispatch& dispatch) const override;

 private:
  const FlashDecode& op_;
  std::optional<ScratchQueries> queries_;
  std::optional<AttentionShape> shape_;  // once refined, as is the layout
  FlashDecodeLayout layout_;
};

}  // namespace mnk
