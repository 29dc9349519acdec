#include "Ops/MergePartialsRules.hpp"

#include "Ops/AttentionResultRules.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = MergePartials;

uint64_t headDimOf(const Op& op) {
  const Shape& shape = op.partials.sums.shape();
  return shape[shape.rank() - 1];
}

uint64_t rowCount(const Op& op) {
  uint64_t rows = 1;
  for (const uint64_t extent : rowAxes(op)) rows *= extent;  // the tensor of sums has at least as many elements
  return rows;
}

std::vector<uint64_t> statExtents(const Op& op) {
  std::vector<uint64_t> extents = rowAxes(op);
  extents.insert(extents.begin(), op.partials.sums.shape()[0]);
  extents.push_back(2);
  return extents;
}

std::optional<Overlap> firstOverlap(const Op& op) {
  std::vector<NamedRange> sources{{"the parts' sums", op.partials.sums.range()},
                                  {"the parts' stats", op.partials.stats.range()}};
  if (op.sinks) sources.push_back({"sinks", op.sinks->range()});
  std::vector<NamedRange> targets;
  addTargets(targets, op.results);
  return firstOverlap(sources, targets);
}

constexpr Rule<Op> kRules[] = {
    {"the partials have no memory", [](const Op& op) { return op.partials.sums && op.partials.stats; },
     [](const Op& op) { return std::string(op.partials.sums ? "stats without memory" : "sums without memory"); },
     [](const Op&) { return std::string("tensors with memory"); }, "Make the partials with FlashDecode first."},

    {"the sums have the wrong dtype or rank",
     [](const Op& op) {
       const uint32_t rank = op.partials.sums.shape().rank();
       return op.partials.sums.dtype() == DType::f32 && rank >= 3 && rank <= 5;
     },
     [](const Op& op) { return op.partials.sums.text(); },
     [](const Op&) {
       return std::string("f32 [parts, heads, headDim], with axes of rows and sequences after the parts or without");
     },
     "Put an axis of parts before those that FlashDecode writes."},

    {"the stats do not match the sums",
     [](const Op& op) {
       return op.partials.stats.dtype() == DType::f32 && isShaped(op.partials.stats, statExtents(op));
     },
     [](const Op& op) { return op.partials.stats.text(); },
     [](const Op& op) { return fmt::format("f32 {}", shapeText(statExtents(op))); },
     "Pass the stats that were written with the sums."},

    {"there is nothing to merge, or too much",
     [](const Op& op) {
       const uint64_t parts = op.partials.sums.shape()[0];
       return parts >= 1 && parts <= Op::kMaxParts;
     },
     [](const Op& op) { return countText(op.partials.sums.shape()[0], "part"); },
     [](const Op&) { return fmt::format("1 to {}", Op::kMaxParts); }, "Merge some parts to partials first."},

    {"the head dim cannot be merged",
     [](const Op& op) {
       const uint64_t headDim = headDimOf(op);
       return headDim != 0 && headDim <= 512 && headDim % (headDim <= 256 ? 8 : 16) == 0;
     },
     [](const Op& op) { return fmt::format("{}", headDimOf(op)); },
     [](const Op&) { return std::string("a multiple of 8 up to 256, or of 16 up to 512"); },
     "Pad the sums with zeros."},

    {"an extent is too large for the kernel", [](const Op& op) { return rowCount(op) < kMaxKVExtent; },
     [](const Op& op) { return fmt::format("{} rows", rowCount(op)); },
     [](const Op&) { return std::string("less than 2^31"); }, "Merge a part of the rows at a time."},

};

constexpr Rule<Op> kFinishRules[] = {
    {"a result does not match the partials",
     [](const Op& op) { return !firstMisfit(op.results, {rowAxes(op)}, headDimOf(op)); },
     [](const Op& op) { return firstMisfit(op.results, {rowAxes(op)}, headDimOf(op))->got; },
     [](const Op& op) { return firstMisfit(op.results, {rowAxes(op)}, headDimOf(op))->expected; },
     "Give results the axes of the partials but for the parts."},

    {"sinks do not match the partials",
     [](const Op& op) {
       return !op.sinks || (*op.sinks && op.sinks->dtype() == DType::f32 && isShaped(*op.sinks, {rowAxes(op).back()}));
     },
     [](const Op& op) { return op.sinks->text(); },
     [](const Op& op) { return fmt::format("f32 [{}]", rowAxes(op).back()); }, "Pass a sink for each head."},

    {"partials cannot have sinks", [](const Op& op) { return !op.sinks || !op.results.partials; },
     [](const Op&) { return std::string("sinks, and partials as the target"); },
     [](const Op&) { return std::string("sinks once, where all parts are merged"); },
     "Pass sinks where results are made."},

    {"operands share memory", [](const Op& op) { return !firstOverlap(op); },
     [](const Op& op) { return firstOverlap(op)->text(); }, [](const Op&) { return std::string("separate memory"); },
     "Write results to memory of their own."},
};

}  // namespace

std::span<const Rule<MergePartials>> mergePartialsRules() {
  static const std::vector<Rule<Op>> all = joined<Op>({kRules, kResultRules<Op>, kFinishRules});
  return all;
}

std::vector<uint64_t> rowAxes(const MergePartials& op) {
  const Shape& shape = op.partials.sums.shape();
  std::vector<uint64_t> axes;
  for (uint32_t axis = 1; axis + 1 < shape.rank(); ++axis) axes.push_back(shape[axis]);
  return axes;
}

}  // namespace mnk
