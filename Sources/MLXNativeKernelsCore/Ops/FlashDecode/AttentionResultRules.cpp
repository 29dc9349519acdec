#include "Ops/FlashDecode/AttentionResultRules.hpp"

#include <algorithm>

#include "Support/Errors.hpp"

namespace mnk {

bool hasMemory(const AttentionResults& results) {
  if (results.output && !*results.output) return false;
  if (results.partials && !(results.partials->sums && results.partials->stats)) return false;
  return !results.logSumExp || *results.logSumExp;
}

bool hasOneTarget(const AttentionResults& results) {
  return results.output.has_value() != results.partials.has_value();
}

bool isShaped(const Tensor& tensor, const std::vector<uint64_t>& extents) {
  const auto shape = Shape::make(extents);
  return shape && tensor.shape() == *shape;
}

std::string shapeText(const std::vector<uint64_t>& extents) {
  const auto shape = Shape::make(extents);
  return shape ? shape->text() : std::string("fewer elements");
}

namespace {

using Shapes = std::vector<std::vector<uint64_t>>;

Shapes withLast(Shapes shapes, uint64_t extent) {
  for (std::vector<uint64_t>& extents : shapes) extents.push_back(extent);
  return shapes;
}

std::optional<MisfitResult> misfit(std::string_view name, const Tensor& tensor, const Shapes& shapes, bool isAnyFloat) {
  const bool isOfType = isAnyFloat ? isFloat(tensor.dtype()) : tensor.dtype() == DType::f32;
  const auto fits = [&](const std::vector<uint64_t>& extents) { return isShaped(tensor, extents); };
  if (isOfType && std::any_of(shapes.begin(), shapes.end(), fits)) return std::nullopt;
  std::string expected = isAnyFloat ? "f32, f16 or bf16 " : "f32 ";
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i != 0) expected += i + 1 == shapes.size() ? " or " : ", ";
    expected += shapeText(shapes[i]);
  }
  return MisfitResult{.got = fmt::format("{} {}", name, tensor.text()), .expected = std::move(expected)};
}

}  // namespace

std::optional<MisfitResult> firstMisfit(const AttentionResults& results, const Shapes& rows, uint64_t headDim) {
  std::optional<MisfitResult> first;
  const auto check = [&](std::string_view name, const Tensor& tensor, const Shapes& shapes, bool isAnyFloat = false) {
    if (!first) first = misfit(name, tensor, shapes, isAnyFloat);
  };
  if (results.output) check("results", *results.output, withLast(rows, headDim), true);
  if (results.partials) {
    check("sums", results.partials->sums, withLast(rows, headDim));
    check("stats", results.partials->stats, withLast(rows, 2));
  }
  if (results.logSumExp) check("logSumExp", *results.logSumExp, rows);
  return first;
}

void addTargets(std::vector<NamedRange>& targets, const AttentionResults& results) {
  if (results.output) targets.push_back({"results", results.output->range()});
  if (results.partials) {
    targets.push_back({"sums", results.partials->sums.range()});
    targets.push_back({"stats", results.partials->stats.range()});
  }
  if (results.logSumExp) targets.push_back({"logSumExp", results.logSumExp->range()});
}

}  // namespace mnk
