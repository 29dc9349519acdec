// KVCacheWrite, repeated at other positions.
#pragma once
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Runtime/RepeatedOp.hpp"

namespace mnk {

struct WriteIndices {
  uint32_t keys, values, keyCache, valueCache, sequences, positions;
};
bool describeWrite(const KVCacheWrite& op, const WriteIndices& indices, OpForm& form);
void patchWritten(const KVCacheWrite& op, const Placement& placement, const WriteIndices& indices, Dispatch& dispatch);

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

}  // namespace mnk
