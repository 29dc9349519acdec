#include "Ops/MergePartials/MergePartials.hpp"

#include "Ops/FlashDecode/FlashDecode.hpp"

namespace mnk {

namespace {

bool areSums(const Tensor& sums) {
  return sums.dtype() == DType::f32 && sums.shape().rank() >= 3 && sums.shape().rank() <= 5;
}

uint64_t partsOf(const MergePartials& op) {
  return op.parts.sums.shape()[0];
}

bool canMerge(uint64_t headDim) {
  return headDim != 0 && headDim <= 512 && headDim % (headDim <= 256 ? 8 : 16) == 0;
}

uint64_t headDimOf(const MergePartials& op) {
  const Shape& shape = op.parts.sums.shape();
  return shape[shape.rank() - 1];
}

uint64_t rowCount(const MergePartials& op) {
  uint64_t rows = 1;
  // Cannot overflow: the sums tensor has at least this many elements.
  for (const uint64_t extent : rowAxes(op)) rows *= extent;
  return rows;
}

std::vector<uint64_t> statExtents(const MergePartials& op) {
  std::vector<uint64_t> extents = rowAxes(op);
  extents.insert(extents.begin(), partsOf(op));
  extents.push_back(2);
  return extents;
}

std::optional<Overlap> overlapOf(const MergePartials& op) {
  std::vector<NamedRange> sources{{"the parts' sums", op.parts.sums.range()},
                                  {"the parts' stats", op.parts.stats.range()}};
  if (op.sinks) sources.push_back({"sinks", op.sinks->range()});
  std::vector<NamedRange> targets;
  addTargets(targets, op.results);
  return firstOverlap(sources, targets);
}

constexpr Rule<MergePartials> kMergeRules[] = {
    INVALID_IF(!op.parts.sums || !op.parts.stats, "the partials have no memory",
               op.parts.sums ? "stats without memory" : "sums without memory", "tensors with memory",
               "Make the partials with FlashDecode first."),

    INVALID_IF(!areSums(op.parts.sums), "the sums have the wrong dtype or rank", op.parts.sums.text(),
               "f32 [parts, heads, headDim], with axes of rows and sequences after the parts or without",
               "Put an axis of parts before those that FlashDecode writes."),

    INVALID_IF(op.parts.stats.dtype() != DType::f32 || !isShaped(op.parts.stats, statExtents(op)),
               "the stats do not match the sums", op.parts.stats.text(),
               fmt::format("f32 {}", shapeText(statExtents(op))), "Pass the stats that were written with the sums."),

    INVALID_IF(partsOf(op) < 1 || partsOf(op) > MergePartials::kMaxParts, "there is nothing to merge, or too much",
               countText(partsOf(op), "part"), fmt::format("1 to {}", MergePartials::kMaxParts),
               "Merge some parts to partials first."),

    INVALID_IF(!canMerge(headDimOf(op)), "the head dim cannot be merged", fmt::format("{}", headDimOf(op)),
               "a multiple of 8 up to 256, or of 16 up to 512", "Pad the sums with zeros."),

    INVALID_IF(rowCount(op) >= kMaxKVExtent, "an extent is too large for the kernel",
               fmt::format("{} rows", rowCount(op)), "less than 2^31", "Merge a part of the rows at a time."),
};

constexpr Rule<MergePartials> kFinishRules[] = {
    INVALID_IF(firstMisfit(op.results, {rowAxes(op)}, headDimOf(op)), "a result does not match the partials",
               firstMisfit(op.results, {rowAxes(op)}, headDimOf(op))->got,
               firstMisfit(op.results, {rowAxes(op)}, headDimOf(op))->expected,
               "Give results the axes of the partials but for the parts."),

    INVALID_IF(
        op.sinks && (!*op.sinks || op.sinks->dtype() != DType::f32 || !isShaped(*op.sinks, {rowAxes(op).back()})),
        "sinks do not match the partials", op.sinks->text(), fmt::format("f32 [{}]", rowAxes(op).back()),
        "Pass a sink for each head."),

    INVALID_IF(op.sinks.has_value() && op.results.partials, "partials cannot have sinks",
               "sinks, and partials as the target", "sinks once, where all parts are merged",
               "Pass sinks where results are made."),

    INVALID_IF(overlapOf(op), "operands share memory", overlapOf(op)->text(), "separate memory",
               "Write results to separate memory."),
};

}  // namespace

std::span<const Rule<MergePartials>> mergePartialsRules() {
  static const std::vector<Rule<MergePartials>> all =
      joined<MergePartials>({kMergeRules, kResultRules<MergePartials>, kFinishRules});
  return all;
}

std::vector<uint64_t> rowAxes(const MergePartials& op) {
  const Shape& shape = op.parts.sums.shape();
  std::vector<uint64_t> axes;
  for (uint32_t axis = 1; axis + 1 < shape.rank(); ++axis) axes.push_back(shape[axis]);
  return axes;
}

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
