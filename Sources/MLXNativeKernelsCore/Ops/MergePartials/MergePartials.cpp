#include "MLXNativeKernels/Generated/FlashDecode.hpp"

#include "Ops/FlashDecode/AttentionDispatch.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Ops/MergePartials/MergePartialsRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

Result<Plan> plan(const MergePartials& op) {
  return guarded(MergePartials::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(mergePartialsRules(), op, MergePartials::name));
    Plan plan{.op = std::string(MergePartials::name), .dispatches = {}};
    const Shape& shape = op.parts.sums.shape();
    const uint64_t parts = shape[0];
    const uint64_t headDim = shape[shape.rank() - 1];
    const uint64_t rows = shape.elementCount() / parts / headDim;
    if (rows == 0) return plan;
    const uint64_t heads = rowAxes(op).back();
    plan.dispatches.push_back(makeReduce({.kind = MergePartials::name,
                                          .rows = rows,
                                          .parts = parts,
                                          .rowStride = 1,
                                          .partStride = rows,
                                          .simdgroups = 8,
                                          .finish = finishOf(heads, heads, headDim, finishChunks(headDim)),
                                          .sums = MemoryPart::of(op.parts.sums),
                                          .stats = MemoryPart::of(op.parts.stats),
                                          .sinks = op.sinks,
                                          .results = op.results}));
    return plan;
  });
}

}  // namespace mnk
