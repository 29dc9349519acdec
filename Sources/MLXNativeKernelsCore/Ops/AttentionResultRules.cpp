#include "Ops/AttentionResultRules.hpp"

#include "Support/Format.hpp"

namespace mnk {

bool hasMemory(const AttentionResults& results) {
  if (results.into && !*results.into) return false;
  if (results.partials && !(results.partials->sums && results.partials->stats)) return false;
  return !results.logSumExp || *results.logSumExp;
}

bool hasOneTarget(const AttentionResults& results) {
  return results.into.has_value() != results.partials.has_value();
}

bool isShaped(const Tensor& tensor, const std::vector<uint64_t>& extents) {
  const auto shape = Shape::make(extents);
  return shape && tensor.shape() == *shape;
}

std::string shapeText(const std::vector<uint64_t>& extents) {
  const auto shape = Shape::make(extents);
  return shape ? shape->text() : std::string("fewer elements");
}

std::optional<MisfitResult> firstMisfit(const AttentionResults& results, const std::vector<uint64_t>& rows,
                                        uint64_t headDim) {
  std::vector<uint64_t> ofVectors = rows;
  ofVectors.push_back(headDim);
  std::vector<uint64_t> ofStats = rows;
  ofStats.push_back(2);
  const auto misfit = [](const char* name, const Tensor& tensor, const std::vector<uint64_t>& extents) {
    return MisfitResult{.got = fmt::format("{} {}", name, tensor.text()),
                        .expected = fmt::format("f32 {}", shapeText(extents))};
  };
  if (results.into && !(isFloat(results.into->dtype()) && isShaped(*results.into, ofVectors))) {
    return MisfitResult{.got = fmt::format("results {}", results.into->text()),
                        .expected = fmt::format("f32, f16 or bf16 {}", shapeText(ofVectors))};
  }
  if (results.partials) {
    const auto& [sums, stats] = *results.partials;
    if (sums.dtype() != DType::f32 || !isShaped(sums, ofVectors)) return misfit("sums", sums, ofVectors);
    if (stats.dtype() != DType::f32 || !isShaped(stats, ofStats)) return misfit("stats", stats, ofStats);
  }
  if (results.logSumExp && !(results.logSumExp->dtype() == DType::f32 && isShaped(*results.logSumExp, rows))) {
    return misfit("logSumExp", *results.logSumExp, rows);
  }
  return std::nullopt;
}

void addTargets(std::vector<NamedRange>& targets, const AttentionResults& results) {
  if (results.into) targets.push_back({"results", results.into->range()});
  if (results.partials) {
    targets.push_back({"sums", results.partials->sums.range()});
    targets.push_back({"stats", results.partials->stats.range()});
  }
  if (results.logSumExp) targets.push_back({"logSumExp", results.logSumExp->range()});
}

}  // namespace mnk
