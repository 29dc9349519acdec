// What ops that finish attention ask of their results.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/FlashDecode.hpp"
#include "Ops/Overlap.hpp"

namespace mnk {

bool hasMemory(const AttentionResults& results);
bool hasOneTarget(const AttentionResults& results);
// Whether the tensor has these axes.
bool isShaped(const Tensor& tensor, const std::vector<uint64_t>& extents);
std::string shapeText(const std::vector<uint64_t>& extents);

// The first result whose dtype or shape does not fit rows of these axes, as "sums f32 [4, 8]", and what it must be.
struct MisfitResult {
  std::string got;
  std::string expected;
};
std::optional<MisfitResult> firstMisfit(const AttentionResults& results, const std::vector<uint64_t>& rows,
                                        uint64_t headDim);

void addTargets(std::vector<NamedRange>& targets, const AttentionResults& results);

}  // namespace mnk
