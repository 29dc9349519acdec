// Rules for the results of ops that finish attention.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/Common/Overlap.hpp"
#include "Support/Errors.hpp"

namespace mnk {

bool hasMemory(const AttentionResults& results);
bool hasOneTarget(const AttentionResults& results);
template <typename Op>
inline constexpr Rule<Op> kResultRules[] = {
    INVALID_IF(!hasOneTarget(op.results), "attention needs exactly one target",
               op.results.output ? "results and partials" : "neither results nor partials",
               "a tensor for results, or for partials", "Set exactly one of `output` and `partials`."),

    INVALID_IF(!hasMemory(op.results), "a result has no memory", "a tensor without memory", "tensors with memory",
               "Make the tensors that results go to."),
};

// Whether the tensor has these axes.
bool isShaped(const Tensor& tensor, const std::vector<uint64_t>& extents);
std::string shapeText(const std::vector<uint64_t>& extents);

// The first result whose dtype or shape does not match rows with one of these lists of axes: its description, such as
// "sums f32 [4, 8]", and what is expected.
struct MisfitResult {
  std::string got;
  std::string expected;
};
std::optional<MisfitResult> firstMisfit(const AttentionResults& results, const std::vector<std::vector<uint64_t>>& rows,
                                        uint64_t headDim);

void addTargets(std::vector<NamedRange>& targets, const AttentionResults& results);

}  // namespace mnk
