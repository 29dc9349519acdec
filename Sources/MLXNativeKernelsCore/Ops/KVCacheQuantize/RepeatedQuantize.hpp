// KVCacheQuantize, repeated at other positions.
#pragma once
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.hpp"
#include "Runtime/RepeatedOp.hpp"

namespace mnk {

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

}  // namespace mnk
