#include <algorithm>
#include <cmath>
#include <numbers>

#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
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

MemoryPart MemoryPart::of(const Tensor& tensor) {
  return {tensor.buffer(), tensor.byteOffset(), tensor.byteCount()};
}

namespace {

std::vector<Region> allOf(uint64_t bytes) {
  return {{.offset = 0, .rowBytes = bytes, .rowStride = bytes, .rows = 1}};
}

// Function constants of kernels that finish rows. If the kernel only stores the parts of splits, the results do not
// matter.
std::vector<FunctionConstant> finishConstants(const AttentionResults& results, const QuantizedKVCacheView* quantized,
                                              bool hasSinks) {
  const bool hasValueMeans = quantized && quantized->values->means.has_value();
  const bool hasQuantizedValues = quantized && !quantized->values->isDense();
  const KVCodec::Name codec = quantized ? quantized->codecName() : KVCodec::Name::turbo;
  return {{kKVCodecIsTurbo, codec == KVCodec::Name::turbo},
          {kKVCodecIsUnrotated, codec == KVCodec::Name::mlx1Unrotated},
          {kKVCodecIsAffine, codec == KVCodec::Name::mlx1Affine4},
          {kKVCodecHasValueMeans, hasValueMeans},
          {kKVCodecHasQuantizedValues, hasQuantizedValues},
          {kKVCodecValueDim, hasQuantizedValues ? static_cast<uint32_t>(quantized->values->headDim()) : 0},
          {kFlashDecodeIntoType, static_cast<uint32_t>(results.output ? results.output->dtype() : DType::f32)},
          {kFlashDecodeIsVectorizedInto, results.output && isAlignedToFour(*results.output)},
          {kFlashDecodeHasSinks, hasSinks},
          {kFlashDecodeHasLogSumExp, results.logSumExp.has_value()},
          {kFlashDecodeWritesPartials, results.partials.has_value()},
          {kFlashDecodeWritesResults, results.output.has_value()},
          {kFlashDecodeWritesSums, results.partials.has_value()}};
}

// Sums and stats of splits, in the caller's scratch memory, or in the plan's scratch memory from offset `bytesBefore`.
std::pair<MemoryPart, MemoryPart> splitBindings(const std::optional<Tensor>& scratch, uint64_t bytesBefore,
                                                uint64_t sumsBytes, uint64_t statsBytes) {
  const uint64_t start = (scratch ? scratch->byteOffset() : 0) + bytesBefore;
  const std::shared_ptr<Buffer> buffer = scratch ? scratch->buffer() : nullptr;
  return {{buffer, start, sumsBytes}, {buffer, start + sumsBytes, statsBytes}};
}

void bindTo(Dispatch& dispatch, uint32_t index, const MemoryPart& memory, std::vector<Region> regions, Access access) {
  Binding binding{.index = index,
                  .buffer = memory.buffer,
                  .offset = memory.offset,
                  .length = memory.length,
                  .reads = {},
                  .writes = {}};
  (access == Access::read ? binding.reads : binding.writes) = std::move(regions);
  dispatch.buffers.push_back(std::move(binding));
}

// Binds all results. `regions` maps the bytes per row and head of a tensor to the regions that are written.
void bindResults(Dispatch& dispatch, const AttentionResults& results, uint64_t headDim,
                 const std::function<std::vector<Region>(uint64_t bytesPerVector)>& regions) {
  const auto bind = [&](uint32_t index, const Tensor& tensor, uint64_t elements) {
    bindTo(dispatch, index, MemoryPart::of(tensor), regions(elements * byteSize(tensor.dtype())), Access::write);
  };
  if (results.output) bind(kFlashDecodeInto, *results.output, headDim);
  if (results.partials) {
    bind(kFlashDecodeSums, results.partials->sums, headDim);
    bind(kFlashDecodeStats, results.partials->stats, 2);
  }
  if (results.logSumExp) bind(kFlashDecodeLogSumExp, *results.logSumExp, 1);
}

}  // namespace

Dispatch makeReduce(const ReduceDispatch& reduce) {
  const uint64_t headDim = reduce.finish.headDim;
  const FlashDecodeReduceParams params{.finish = reduce.finish,
                                       .parts = static_cast<uint32_t>(reduce.parts),
                                       .rowStride = static_cast<uint32_t>(reduce.rowStride),
                                       .partStride = static_cast<uint32_t>(reduce.partStride)};
  Dispatch dispatch;
  dispatch.kind = reduce.kind;
  dispatch.kernel.function = fmt::format("flashDecodeReduce_{}", finishChunks(headDim));
  dispatch.kernel.constants = finishConstants(reduce.results, reduce.quantized, reduce.sinks.has_value());
  dispatch.kernel.constants.push_back({kFlashDecodeIsAligned, reduce.sums.offset % 16 == 0});
  dispatch.inlines.push_back(InlineBytes::of(kFlashDecodeParams, params));
  bindTo(dispatch, kFlashDecodePartSums, reduce.sums, allOf(reduce.sums.length), Access::read);
  bindTo(dispatch, kFlashDecodePartStats, reduce.stats, allOf(reduce.stats.length), Access::read);
  if (reduce.quantized && reduce.quantized->values->means) {
    dispatch.buffers.push_back(Binding::whole(kFlashDecodeValueMeans, *reduce.quantized->values->means, Access::read));
  }
  if (reduce.sinks) dispatch.buffers.push_back(Binding::whole(kFlashDecodeSinks, *reduce.sinks, Access::read));
  bindResults(dispatch, reduce.results, headDim,
              [&](uint64_t bytesPerVector) { return allOf(reduce.rows * bytesPerVector); });
  const auto simdgroups = static_cast<uint32_t>(std::clamp<uint64_t>(reduce.parts, 1, reduce.simdgroups));
  dispatch.threadgroupMemory.push_back({0, static_cast<uint32_t>(mergingBytes(simdgroups, headDim))});
  dispatch.grid = {.unit = Grid::Unit::threadgroups,
                   .extent = {static_cast<uint32_t>(reduce.rows), 1, 1},
                   .threadgroup = {32 * simdgroups, 1, 1}};
  return dispatch;
}

namespace {

bool isAligned(const Tensor& tensor) {
  return tensor.range().begin % 16 == 0;
}

bool areQueriesAligned(const AttentionShape& shape, uint64_t elements) {
  if (!shape.scratchQueries) return elementAlignment(shape.queryView, elements) == elements;
  return (shape.queries.offset | shape.queries.headDim) % elements == 0;
}

FlashDecodeParams paramsOf(const FlashDecodeLayout& layout, const FlashDecodePass& pass) {
  const AttentionShape& shape = *layout.shape;
  const AttentionOptions& options = shape.options;
  const auto narrow = [](uint64_t value) { return static_cast<uint32_t>(value); };  // the rules bound every extent
  const bool isHeadMajor = shape.slots.layout == KVLayout::headMajor;
  const double scale = options.scale != 0 ? double{options.scale} : 1 / std::sqrt(static_cast<double>(shape.keyDim));
  FlashDecodeParams params{.finish = layout.finish(),
                           .group = narrow(shape.group()),
                           .sequences = narrow(pass.sequences.size()),
                           .rows = narrow(pass.rows),
                           .firstRow = narrow(pass.firstRow),
                           .allRows = narrow(shape.queries.tokens),
                           .firstSequence = narrow(pass.firstSequence),
                           .rowGroups = narrow(layout.rowGroups(pass.rows)),
                           .splits = layout.splits,
                           .capacity = narrow(shape.slots.capacity),
                           .pinned = narrow(shape.slots.pinned),
                           .slotStride = narrow(isHeadMajor ? 1 : shape.slots.heads),
                           .cacheHeadStride = narrow(isHeadMajor ? shape.slots.capacity : 1),
                           .isCausal = options.isCausal,
                           .window = options.window,
                           .queryScale = static_cast<float>(options.softcap != 0 ? scale : scale * std::numbers::log2e),
                           .softcap = options.softcap,
                           .keyInverseRoot = inverseRootOf(shape.keyDim),
                           .keyScaleFactor = 1,
                           .valueScaleFactor = 1,
                           .keyCodeBytes = narrow(shape.keyVector.codeBytes),
                           .valueCodeBytes = narrow(shape.valueVector.codeBytes),
                           .maskRowStride = 0,
                           .maskHeadStride = 0,
                           .maskSequenceStride = 0,
                           .querySequenceStride = shape.queries.sequenceStride,
                           .queryRowStride = shape.queries.tokenStride,
                           .queryHeadStride = shape.queries.headStride};
  if (shape.quantized) {
    params.keyScaleFactor = shape.quantized->keys.codec.scaleFactor;
    params.valueScaleFactor = shape.quantized->values->codec.scaleFactor;
  }
  if (options.mask) {
    const Shape& mask = options.mask->shape();
    const uint32_t rank = mask.rank();
    const auto extent = [&](uint32_t fromEnd) { return rank >= fromEnd ? mask[rank - fromEnd] : 1; };
    const uint64_t keys = extent(1);
    if (extent(2) != 1) params.maskRowStride = keys;
    if (extent(3) != 1) params.maskHeadStride = keys * extent(2);
    if (extent(4) != 1) params.maskSequenceStride = keys * extent(2) * extent(3);
  }
  return params;
}

std::vector<FunctionConstant> constantsOf(const FlashDecodeLayout& layout) {
  const AttentionShape& shape = *layout.shape;
  const AttentionOptions& options = shape.options;
  const QuantizedKVCacheView* quantized = shape.quantized;
  // A split that another dispatch merges is stored as partials, whatever the op's results are.
  const bool isSplit = layout.splits > 1 && !layout.mergesInKernel;
  std::vector<FunctionConstant> constants = isSplit
                                                ? finishConstants({.partials = AttentionPartials{}}, quantized, false)
                                                : finishConstants(shape.results, quantized, options.sinks.has_value());
  const DType cacheType = shape.denseType.value_or(DType::f32);  // codes have none
  const auto bitsOf = [&](const QuantizedKVPlane* plane) {
    return plane && !plane->isDense() ? plane->codec.bits : uint32_t{4};
  };
  // A ring is out of order once it has wrapped. A specialized kernel for the time before would have to be replaced
  // then, which would compile a kernel in the middle of a generation.
  const bool isInOrder = shape.slots.layout == KVLayout::headMajor && shape.slots.wrap == KVWrap::linear;
  const DType maskType = options.mask ? options.mask->dtype() : DType::f32;
  constants.insert(
      constants.end(),
      {{kKVCodecKeyBits, bitsOf(quantized ? &quantized->keys : nullptr)},
       {kKVCodecValueBits, bitsOf(quantized ? &*quantized->values : nullptr)},
       {kKVCodecHasKeyMeans, quantized && quantized->keys.means.has_value()},
       {kKVCodecHasChannelScales, quantized && quantized->keys.channelScales.has_value()},
       {kKVCodecKeyDim, quantized && !quantized->keys.isDense() ? static_cast<uint32_t>(shape.keyDim) : 0},
       {kKVCodecHasQuantizedKeys, quantized && !quantized->keys.isDense()},
       {kFlashDecodeCacheType, static_cast<uint32_t>(cacheType)},
       {kFlashDecodeQueryType, static_cast<uint32_t>(shape.queryView.tensor.dtype())},
       {kFlashDecodeMaskType, static_cast<uint32_t>(maskType)},
       {kFlashDecodeIsAligned, isAligned(*shape.keyPlane) && (!shape.valuePlane || isAligned(*shape.valuePlane)) &&
                                   (!layout.usesMatrices() || areQueriesAligned(shape, 8))},
       {kFlashDecodeIsVectorized, areQueriesAligned(shape, 4)},
       {kFlashDecodeHasMask, options.mask.has_value()},
       {kFlashDecodeHasSlopes, options.slopes.has_value()},
       {kFlashDecodeHasSoftcap, options.softcap != 0},
       {kFlashDecodeIsSplit, isSplit},
       {kFlashDecodeMergesInKernel, layout.mergesInKernel},
       {kFlashDecodeIsInOrder, isInOrder},
       {kFlashDecodeHasTokens, layout.rows > 1},
       {kFlashDecodeIsPadded, layout.isPadded()},
       {kFlashDecodeSeesPinned, shape.seesPinned()},
       {kFlashDecodeIsRagged, shape.isRagged}});
  if (!layout.usesVectors()) constants.push_back({kFlashDecodeHasRowMajorMatrices, layout.hasRowMajorMatrices});
  if (layout.usesMatrices()) constants.push_back({kFlashDecodeTableBits, layout.tuning.matrixTableBits});
  if (layout.usesPrefill()) constants.push_back({kFlashDecodeSimdgroupsPerRow, layout.prefill.parts});
  if (!layout.usesMatrices()) constants.push_back({kFlashDecodeIsOneTensor, shape.isOneTensor()});
  return constants;
}

// The bytes of a pass in results, for vectors of this size.
std::vector<Region> passRegions(const FlashDecodeLayout& layout, const FlashDecodePass& pass, uint64_t bytesPerVector) {
  const HeadsView::Strides& queries = layout.shape->queries;
  const uint64_t rowBytes = queries.heads * bytesPerVector;
  std::vector<Region> regions;
  for (const auto& [first, rows] : pass.joinedRuns()) {
    regions.push_back(
        {.offset = first * rowBytes, .rowBytes = rows * rowBytes, .rowStride = rows * rowBytes, .rows = 1});
  }
  if (!regions.empty()) return regions;
  return {{.offset = (pass.firstSequence * queries.tokens + pass.firstRow) * rowBytes,
           .rowBytes = pass.rows * rowBytes,
           .rowStride = queries.tokens * rowBytes,
           .rows = pass.sequences.size()}};
}

// Binds only the queries of a pass, to which kernel offsets are relative; or all queries, if the pass is ragged.
Binding queriesOf(const AttentionShape& shape, const FlashDecodePass& pass) {
  HeadsView::Strides strides = shape.queries;
  if (pass.runs.empty()) {
    strides.offset += pass.firstSequence * strides.sequenceStride + pass.firstRow * strides.tokenStride;
    strides.sequences = pass.sequences.size();
    strides.tokens = pass.rows;
  }
  const ElementRun all{0, strides.headDim};
  const auto bound = [&](const HeadsView::Strides& places) {
    return bindingOf(kFlashDecodeQueries, HeadsView(shape.queryView.tensor, places), {&all, 1}, Access::read);
  };
  Binding binding = bound(strides);
  if (!pass.runs.empty()) binding.reads.clear();
  for (const auto& [first, rows] : pass.joinedRuns()) {
    HeadsView::Strides part = strides;
    part.offset += first * strides.tokenStride;
    part.tokens = rows;
    Binding own = bound(part);
    for (Region& region : own.reads) region.offset += own.offset - binding.offset;
    binding.reads.insert(binding.reads.end(), own.reads.begin(), own.reads.end());
  }
  if (!shape.scratchQueries) return binding;
  binding.buffer = nullptr;
  binding.offset = strides.offset * byteSize(shape.queryView.tensor.dtype());
  return binding;
}

void bindCache(Dispatch& dispatch, const AttentionShape& shape, const FlashDecodePass& pass) {
  const auto bindReads = [&](uint32_t index, const Tensor& tensor, std::vector<Region> reads) {
    Binding binding = Binding::whole(index, tensor, Access::read);
    binding.reads = std::move(reads);
    dispatch.buffers.push_back(std::move(binding));
  };
  const QuantizedKVCacheView* quantized = shape.quantized;
  if (!quantized) {
    std::vector<Region> keys, values;
    pass.addDenseReads(shape, true, keys);
    pass.addDenseReads(shape, false, values);
    bindReads(kFlashDecodeKeys, *shape.keyPlane, std::move(keys));
    bindReads(kFlashDecodeValues, shape.valuePlane ? *shape.valuePlane : *shape.keyPlane, std::move(values));
    return;
  }
  const auto bind = [&](uint32_t index, const Tensor& tensor, uint64_t vectorBytes) {
    std::vector<Region> reads;
    pass.addReads(shape, vectorBytes, reads);
    bindReads(index, tensor, std::move(reads));
  };
  const auto bindPlane = [&](const QuantizedKVPlane& plane, const KVCodecSizes& vector, uint32_t codes, uint32_t scales,
                             uint32_t means) {
    bind(codes, plane.codes, vector.codeBytes);
    if (!plane.isDense()) bind(scales, plane.scales, vector.scaleBytes);
    if (plane.means) dispatch.buffers.push_back(Binding::whole(means, *plane.means, Access::read));
  };
  bindPlane(quantized->keys, shape.keyVector, kFlashDecodeKeys, kFlashDecodeKeyScales, kFlashDecodeKeyMeans);
  bindPlane(*quantized->values, shape.valueVector, kFlashDecodeValues, kFlashDecodeValueScales, kFlashDecodeValueMeans);
  if (quantized->keys.channelScales) {
    dispatch.buffers.push_back(Binding::whole(kFlashDecodeChannelScales, *quantized->keys.channelScales, Access::read));
  }
}

void bindOption(Dispatch& dispatch, uint32_t index, const std::optional<Tensor>& tensor) {
  if (tensor) dispatch.buffers.push_back(Binding::whole(index, *tensor, Access::read));
}

// Sums and stats of splits.
std::pair<MemoryPart, MemoryPart> splitsOf(const FlashDecodeLayout& layout) {
  return splitBindings(layout.shape->scratch, layout.scratchBeforeSplits(), layout.sumsBytes(), layout.statsBytes());
}

// `firstCount` is where the counts of the pass start in zeroed memory.
Dispatch makePass(const FlashDecodeLayout& layout, const FlashDecodePass& pass, uint64_t firstCount) {
  const AttentionShape& shape = *layout.shape;
  Dispatch dispatch;
  dispatch.kind = FlashDecode::name;
  dispatch.kernel.function = layout.function();
  dispatch.kernel.constants = constantsOf(layout);
  dispatch.inlines.push_back(InlineBytes::of(kFlashDecodeParams, paramsOf(layout, pass)));
  dispatch.inlines.push_back(InlineBytes::ofAll(kFlashDecodeSequences, pass.sequences));
  if (!pass.runs.empty()) dispatch.inlines.push_back(InlineBytes::ofAll(kFlashDecodeRuns, pass.runs));
  dispatch.buffers.push_back(queriesOf(shape, pass));
  bindCache(dispatch, shape, pass);
  bindOption(dispatch, kFlashDecodeMask, shape.options.mask);
  bindOption(dispatch, kFlashDecodeSlopes, shape.options.slopes);
  const auto regions = [&](uint64_t bytesPerVector) { return passRegions(layout, pass, bytesPerVector); };
  if (layout.splits > 1) {
    const auto [sums, stats] = splitsOf(layout);
    const uint32_t sumsIndex = layout.mergesInKernel ? kFlashDecodePartSums : kFlashDecodeSums;
    const uint32_t statsIndex = layout.mergesInKernel ? kFlashDecodePartStats : kFlashDecodeStats;
    bindTo(dispatch, sumsIndex, sums, regions(layout.splits * shape.valueDim * sizeof(float)), Access::write);
    bindTo(dispatch, statsIndex, stats, regions(layout.splits * 2 * sizeof(float)), Access::write);
  }
  if (layout.mergesInKernel) {
    const std::vector<Region> counts = {{.offset = 0, .rowBytes = layout.countBytes(pass)}};
    dispatch.buffers.push_back({.index = kFlashDecodeArrived,
                                .buffer = nullptr,
                                .offset = firstCount,
                                .length = counts[0].rowBytes,
                                .reads = counts,
                                .writes = counts,
                                .isZeroed = true});
  }
  if (layout.splits == 1 || layout.mergesInKernel) {
    bindOption(dispatch, kFlashDecodeSinks, shape.options.sinks);
    bindResults(dispatch, shape.results, shape.valueDim, regions);
  }
  dispatch.threadgroupMemory.push_back({0, layout.threadgroupBytes(layout.simdgroups)});
  dispatch.grid = {.unit = Grid::Unit::threadgroups,
                   .extent = {layout.splits, static_cast<uint32_t>(shape.slots.heads),
                              static_cast<uint32_t>(layout.rowGroups(pass))},
                   .threadgroup = {32 * layout.simdgroups, 1, 1},
                   // A pipeline that needs many registers may allow fewer threads. Simdgroups that share rows must stay
                   // in one threadgroup.
                   .minThreads = 32 * std::max(layout.prefill.parts, 1u),
                   .isShared = layout.usesPrefill()};
  layout.addRepeatedReads(pass, dispatch);
  return dispatch;
}

Result<void> checkScratch(const FlashDecodeLayout& layout) {
  const std::optional<Tensor>& scratch = layout.shape->scratch;
  const uint64_t needed = layout.splits > 1 ? layout.sumsBytes() + layout.statsBytes() : 0;
  if (!scratch || (scratch->byteCount() >= needed && isAligned(*scratch))) return {};
  return Error{.op = std::string(FlashDecode::name),
               .what = "there is too little scratch memory",
               .got = scratch->text(),
               .expected = fmt::format("u8 [{}], at a multiple of 16 bytes", needed),
               .fix = "Make it as long as the plan's scratchBytes, or leave it out."};
}

Plan planOf(const FlashDecodeLayout& layout) {
  const AttentionShape& shape = *layout.shape;
  Plan plan{.op = std::string(FlashDecode::name), .dispatches = {}};
  for (const FlashDecodePass& pass : layout.passes) {
    plan.dispatches.push_back(makePass(layout, pass, plan.zeroedBytes));
    plan.zeroedBytes += layout.countBytes(pass);
  }
  plan.scratchBytes = layout.scratchBeforeSplits();
  if (layout.splits == 1) return plan;
  if (!shape.scratch) plan.scratchBytes += layout.sumsBytes() + layout.statsBytes();
  if (layout.mergesInKernel) return plan;
  const auto [sums, stats] = splitsOf(layout);
  plan.dispatches.push_back(makeReduce(
      {.kind = FlashDecode::name,
       .rows = shape.queryVectors(),
       .parts = layout.splits,
       .rowStride = layout.splits,
       .partStride = 1,
       .simdgroups = layout.tuning.reduceSimdgroups,
       .finish = finishOf(shape.queries.heads, shape.slots.heads, shape.valueDim, finishChunks(shape.valueDim)),
       .sums = sums,
       .stats = stats,
       .quantized = shape.quantized,
       .sinks = shape.options.sinks,
       .results = shape.results}));
  return plan;
}

// `layoutOf` returns the layout of a shape.
template <typename LayoutOf>
Result<Plan> planned(const FlashDecode& op, const std::optional<ScratchQueries>& queries, const LayoutOf& layoutOf) {
  return guarded(FlashDecode::name, [&]() -> Result<Plan> {
    MNK_TRY(const auto shape, AttentionShape::of(op, queries));
    if (shape.queryVectors() == 0) return Plan{.op = std::string(FlashDecode::name), .dispatches = {}};
    MNK_TRY(const auto layout, layoutOf(shape));
    MNK_TRY(checkScratch(layout));
    return planOf(layout);
  });
}

}  // namespace

Result<Plan> plan(const FlashDecode& op, const DeviceProfile& profile) {
  return planned(op, {}, [&](const AttentionShape& shape) { return layoutFor(shape, profile); });
}

Result<Plan> plan(const FlashDecode& op, const std::optional<ScratchQueries>& queries, Device* device) {
  return planned(op, queries, [&](const AttentionShape& shape) {
    return device ? layoutFor(shape, *device) : layoutFor(shape, DeviceProfile{});
  });
}

Result<Plan> plan(const FlashDecode& op, Device& device) {
  return plan(op, {}, &device);
}

Result<Plan> planAs(const FlashDecode& op, const DeviceProfile& profile, const FlashDecodeChoice& choice) {
  return planned(op, {}, [&](const AttentionShape& shape) { return layoutFor(shape, profile, choice); });
}

}  // namespace mnk
