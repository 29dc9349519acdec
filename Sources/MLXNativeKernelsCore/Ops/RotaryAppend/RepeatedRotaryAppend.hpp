// RotaryAppend, repeated at other positions.
#pragma once
#include <optional>

#include "Ops/KVCacheQuantize/RepeatedQuantize.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"

namespace mnk {

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

}  // namespace mnk
