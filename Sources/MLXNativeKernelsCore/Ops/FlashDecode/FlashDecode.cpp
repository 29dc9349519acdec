#include "MLXNativeKernels/FlashDecode.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "MLXNativeKernels/KernelRegistry.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/VectorLanes.hpp"
#include "Ops/FlashDecode/AttentionDispatch.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

using Op = FlashDecode;

bool isAligned(const Tensor& tensor) {
  return tensor.range().begin % 16 == 0;
}

// Where the vectors of the queries lie, in their tensor or in scratch memory.
HeadsView::Strides queryStrides(const Op& op, const FlashDecodeLayout& layout) {
  HeadsView::Strides strides = op.queries.resolved();
  if (!layout.scratchQueries) return strides;
  strides.offset = layout.scratchQueries->offset / byteSize(op.queries.tensor.dtype());
  strides.headStride = strides.headDim;
  strides.tokenStride = strides.heads * strides.headDim;
  strides.sequenceStride = strides.tokens * strides.tokenStride;
  return strides;
}

bool areQueriesAligned(const Op& op, const FlashDecodeLayout& layout, uint64_t elements) {
  if (!layout.scratchQueries) return elementAlignment(op.queries, elements) == elements;
  const HeadsView::Strides strides = queryStrides(op, layout);
  return (strides.offset | strides.headDim) % elements == 0;
}

FlashDecodeParams paramsOf(const Op& op, const FlashDecodeLayout& layout, const FlashDecodePass& pass) {
  const KVCacheView slots = cacheOf(op);
  const auto narrow = [](uint64_t value) { return static_cast<uint32_t>(value); };  // the rules bound every extent
  const bool isHeadMajor = slots.layout == KVLayout::headMajor;
  const HeadsView::Strides queries = queryStrides(op, layout);
  const double scale =
      op.options.scale != 0 ? double{op.options.scale} : 1 / std::sqrt(static_cast<double>(layout.keyDim));
  FlashDecodeParams params{
      .finish = layout.finish(slots.heads()),
      .group = narrow(layout.group),
      .sequences = narrow(pass.sequences.size()),
      .rows = narrow(pass.rows),
      .firstRow = narrow(pass.firstRow),
      .allRows = narrow(layout.queries.rows),
      .firstSequence = narrow(pass.firstSequence),
      .rowGroups = narrow(layout.rowGroups(pass.rows)),
      .splits = layout.splits,
      .capacity = narrow(slots.capacity()),
      .pinned = slots.pinned,
      .slotStride = narrow(isHeadMajor ? 1 : slots.heads()),
      .cacheHeadStride = narrow(isHeadMajor ? slots.capacity() : 1),
      .isCausal = op.options.isCausal,
      .window = op.options.window,
      .queryScale = static_cast<float>(op.options.softcap != 0 ? scale : scale * std::numbers::log2e),
      .softcap = op.options.softcap,
      .keyInverseRoot = inverseRootOf(layout.keyDim),
      .keyScaleFactor = 1,
      .valueScaleFactor = 1,
      .keyCodeBytes = narrow(layout.keyDim * byteSize(slots.keys.dtype())),
      .valueCodeBytes = narrow(layout.valueDim * byteSize(slots.keys.dtype())),
      .maskRowStride = 0,
      .maskHeadStride = 0,
      .maskSequenceStride = 0,
      .querySequenceStride = queries.sequenceStride,
      .queryRowStride = queries.tokenStride,
      .queryHeadStride = queries.headStride};
  if (const QuantizedKVCacheView* quantized = quantizedOf(op)) {
    params.keyScaleFactor = quantized->keys.codec.scaleFactor;
    params.valueScaleFactor = quantized->values->codec.scaleFactor;
    params.keyCodeBytes = narrow(quantized->keys.vectorSizes().codeBytes);
    params.valueCodeBytes = narrow(quantized->values->vectorSizes().codeBytes);
  }
  if (op.options.mask) {
    const Shape& shape = op.options.mask->shape();
    const uint32_t rank = shape.rank();
    const auto extent = [&](uint32_t fromEnd) { return rank >= fromEnd ? shape[rank - fromEnd] : 1; };
    const uint64_t keys = extent(1);
    if (extent(2) != 1) params.maskRowStride = keys;
    if (extent(3) != 1) params.maskHeadStride = keys * extent(2);
    if (extent(4) != 1) params.maskSequenceStride = keys * extent(2) * extent(3);
  }
  return params;
}

std::vector<FunctionConstant> constantsOf(const Op& op, const FlashDecodeLayout& layout) {
  const KVCacheView slots = cacheOf(op);
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  // A split that another dispatch merges is stored as partials, whatever the op's results are.
  const bool isSplit = layout.splits > 1 && !layout.mergesInKernel;
  std::vector<FunctionConstant> constants = isSplit
                                                ? finishConstants({.partials = AttentionPartials{}}, quantized, false)
                                                : finishConstants(op.results, quantized, op.options.sinks.has_value());
  const DType cacheType = denseType(op).value_or(DType::f32);  // codes have none
  const auto bitsOf = [&](const QuantizedKVPlane* plane) {
    return plane && !plane->isDense() ? plane->codec.bits : uint32_t{4};
  };
  // A ring is out of order once it has wrapped. A specialized kernel for the time before would have to be replaced
  // then, which would compile a kernel in the middle of a generation.
  const bool isInOrder = slots.layout == KVLayout::headMajor && slots.wrap == KVWrap::linear;
  const DType maskType = op.options.mask ? op.options.mask->dtype() : DType::f32;
  constants.insert(
      constants.end(),
      {{kKVCodecKeyBits, bitsOf(quantized ? &quantized->keys : nullptr)},
       {kKVCodecValueBits, bitsOf(quantized ? &*quantized->values : nullptr)},
       {kKVCodecHasKeyMeans, quantized && quantized->keys.means.has_value()},
       {kKVCodecHasChannelScales, quantized && quantized->keys.channelScales.has_value()},
       {kKVCodecKeyDim, quantized && !quantized->keys.isDense() ? static_cast<uint32_t>(layout.keyDim) : 0},
       {kKVCodecHasQuantizedKeys, quantized && !quantized->keys.isDense()},
       {kFlashDecodeCacheType, static_cast<uint32_t>(cacheType)},
       {kFlashDecodeQueryType, static_cast<uint32_t>(op.queries.tensor.dtype())},
       {kFlashDecodeMaskType, static_cast<uint32_t>(maskType)},
       {kFlashDecodeIsAligned, isAligned(slots.keys) && (!slots.values || isAligned(*slots.values)) &&
                                   (!layout.usesMatrices || areQueriesAligned(op, layout, 8))},
       {kFlashDecodeIsVectorized, areQueriesAligned(op, layout, 4)},
       {kFlashDecodeHasMask, op.options.mask.has_value()},
       {kFlashDecodeHasSlopes, op.options.slopes.has_value()},
       {kFlashDecodeHasSoftcap, op.options.softcap != 0},
       {kFlashDecodeIsSplit, isSplit},
       {kFlashDecodeMergesInKernel, layout.mergesInKernel},
       {kFlashDecodeIsInOrder, isInOrder},
       {kFlashDecodeHasTokens, layout.rows > 1},
       {kFlashDecodeIsPadded, layout.isPadded()},
       {kFlashDecodeSeesPinned, seesPinned(op)},
       {kFlashDecodeIsRagged, isRagged(op)}});
  if (!layout.usesVectors()) constants.push_back({kFlashDecodeHasRowMajorMatrices, layout.hasRowMajorMatrices});
  if (layout.usesMatrices) constants.push_back({kFlashDecodeTableBits, layout.tuning.matrixTableBits});
  if (layout.usesPrefill()) constants.push_back({kFlashDecodeSimdgroupsPerRow, layout.prefill.parts});
  if (!layout.usesMatrices) constants.push_back({kFlashDecodeIsOneTensor, isOneTensor(op)});
  return constants;
}

// The bytes of a pass in results, for vectors of this size.
std::vector<Region> passRegions(const FlashDecodeLayout& layout, const FlashDecodePass& pass, uint64_t bytesPerVector) {
  const uint64_t rowBytes = layout.queries.heads * bytesPerVector;
  std::vector<Region> regions;
  for (const auto& [first, rows] : pass.joinedRuns()) {
    regions.push_back(
        {.offset = first * rowBytes, .rowBytes = rows * rowBytes, .rowStride = rows * rowBytes, .rows = 1});
  }
  if (!regions.empty()) return regions;
  return {{.offset = (pass.firstSequence * layout.queries.rows + pass.firstRow) * rowBytes,
           .rowBytes = pass.rows * rowBytes,
           .rowStride = layout.queries.rows * rowBytes,
           .rows = pass.sequences.size()}};
}

// Binds only the queries of a pass, to which kernel offsets are relative; or all queries, if the pass is ragged.
Binding queriesOf(const Op& op, const FlashDecodeLayout& layout, const FlashDecodePass& pass) {
  HeadsView::Strides strides = queryStrides(op, layout);
  if (pass.runs.empty()) {
    strides.offset += pass.firstSequence * strides.sequenceStride + pass.firstRow * strides.tokenStride;
    strides.sequences = pass.sequences.size();
    strides.tokens = pass.rows;
  }
  const ElementRun all{0, strides.headDim};
  const auto bound = [&](const HeadsView::Strides& places) {
    return bindingOf(kFlashDecodeQueries, HeadsView(op.queries.tensor, places), {&all, 1}, Access::read);
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
  if (!layout.scratchQueries) return binding;
  binding.buffer = nullptr;
  binding.offset = strides.offset * byteSize(op.queries.tensor.dtype());
  return binding;
}

void bindCache(Dispatch& dispatch, const Op& op, const FlashDecodePass& pass) {
  const KVCacheView slots = cacheOf(op);
  const auto bindReads = [&](uint32_t index, const Tensor& tensor, std::vector<Region> reads) {
    Binding binding = Binding::whole(index, tensor, Access::read);
    binding.reads = std::move(reads);
    dispatch.buffers.push_back(std::move(binding));
  };
  const QuantizedKVCacheView* quantized = quantizedOf(op);
  if (!quantized) {
    std::vector<Region> keys, values;
    pass.addDenseReads(op, true, keys);
    pass.addDenseReads(op, false, values);
    bindReads(kFlashDecodeKeys, slots.keys, std::move(keys));
    bindReads(kFlashDecodeValues, slots.values.value_or(slots.keys), std::move(values));
    return;
  }
  const auto bind = [&](uint32_t index, const Tensor& tensor, uint64_t vectorBytes) {
    std::vector<Region> reads;
    pass.addReads(op, vectorBytes, reads);
    bindReads(index, tensor, std::move(reads));
  };
  const auto bindPlane = [&](const QuantizedKVPlane& plane, uint32_t codes, uint32_t scales, uint32_t means) {
    const KVCodecSizes vector = plane.vectorSizes();
    bind(codes, plane.codes, vector.codeBytes);
    if (!plane.isDense()) bind(scales, plane.scales, vector.scaleBytes);
    if (plane.means) dispatch.buffers.push_back(Binding::whole(means, *plane.means, Access::read));
  };
  bindPlane(quantized->keys, kFlashDecodeKeys, kFlashDecodeKeyScales, kFlashDecodeKeyMeans);
  bindPlane(*quantized->values, kFlashDecodeValues, kFlashDecodeValueScales, kFlashDecodeValueMeans);
  if (quantized->keys.channelScales) {
    dispatch.buffers.push_back(Binding::whole(kFlashDecodeChannelScales, *quantized->keys.channelScales, Access::read));
  }
}

void bindOption(Dispatch& dispatch, uint32_t index, const std::optional<Tensor>& tensor) {
  if (tensor) dispatch.buffers.push_back(Binding::whole(index, *tensor, Access::read));
}

// Sums and stats of splits.
std::pair<MemoryPart, MemoryPart> splitsOf(const Op& op, const FlashDecodeLayout& layout) {
  return splitBindings(op.scratch, layout.scratchBeforeSplits(), layout.sumsBytes(), layout.statsBytes());
}

// `firstCount` is where the counts of the pass start in zeroed memory.
Dispatch makePass(const Op& op, const FlashDecodeLayout& layout, const FlashDecodePass& pass, uint64_t firstCount) {
  Dispatch dispatch;
  dispatch.kind = Op::name;
  dispatch.kernel.function = layout.function();
  dispatch.kernel.constants = constantsOf(op, layout);
  dispatch.inlines.push_back(InlineBytes::of(kFlashDecodeParams, paramsOf(op, layout, pass)));
  dispatch.inlines.push_back(InlineBytes::ofAll(kFlashDecodeSequences, pass.sequences));
  if (!pass.runs.empty()) dispatch.inlines.push_back(InlineBytes::ofAll(kFlashDecodeRuns, pass.runs));
  dispatch.buffers.push_back(queriesOf(op, layout, pass));
  bindCache(dispatch, op, pass);
  bindOption(dispatch, kFlashDecodeMask, op.options.mask);
  bindOption(dispatch, kFlashDecodeSlopes, op.options.slopes);
  const auto regions = [&](uint64_t bytesPerVector) { return passRegions(layout, pass, bytesPerVector); };
  if (layout.splits > 1) {
    const auto [sums, stats] = splitsOf(op, layout);
    const uint32_t sumsIndex = layout.mergesInKernel ? kFlashDecodePartSums : kFlashDecodeSums;
    const uint32_t statsIndex = layout.mergesInKernel ? kFlashDecodePartStats : kFlashDecodeStats;
    bindTo(dispatch, sumsIndex, sums, regions(layout.splits * layout.valueDim * sizeof(float)), Access::write);
    bindTo(dispatch, statsIndex, stats, regions(layout.splits * 2 * sizeof(float)), Access::write);
  }
  if (layout.mergesInKernel) {
    const std::vector<Region> counts = {{.offset = 0, .rowBytes = layout.countBytes(op, pass)}};
    dispatch.buffers.push_back({.index = kFlashDecodeArrived,
                                .buffer = nullptr,
                                .offset = firstCount,
                                .length = counts[0].rowBytes,
                                .reads = counts,
                                .writes = counts,
                                .isZeroed = true});
  }
  if (layout.splits == 1 || layout.mergesInKernel) {
    bindOption(dispatch, kFlashDecodeSinks, op.options.sinks);
    bindResults(dispatch, op.results, layout.valueDim, regions);
  }
  dispatch.threadgroupMemory.push_back({0, layout.threadgroupBytes(op, layout.simdgroups)});
  dispatch.grid = {.unit = Grid::Unit::threadgroups,
                   .extent = {layout.splits, static_cast<uint32_t>(slotsOf(op).heads),
                              static_cast<uint32_t>(layout.rowGroups(pass))},
                   .threadgroup = {32 * layout.simdgroups, 1, 1},
                   // A pipeline that needs many registers may allow fewer threads. Simdgroups that share rows must stay
                   // in one threadgroup.
                   .minThreads = 32 * std::max(layout.prefill.parts, 1u),
                   .isShared = layout.usesPrefill()};
  layout.addRepeatedReads(op, pass, dispatch);
  return dispatch;
}

Plan emptyPlan() {
  return {.op = std::string(Op::name), .dispatches = {}};
}

Plan makePlan(const Op& op, const FlashDecodeLayout& layout) {
  Plan plan = emptyPlan();
  for (const FlashDecodePass& pass : layout.passes) {
    plan.dispatches.push_back(makePass(op, layout, pass, plan.zeroedBytes));
    plan.zeroedBytes += layout.countBytes(op, pass);
  }
  plan.scratchBytes = layout.scratchBeforeSplits();
  if (layout.splits == 1) return plan;
  if (!op.scratch) plan.scratchBytes += layout.sumsBytes() + layout.statsBytes();
  if (layout.mergesInKernel) return plan;
  const auto [sums, stats] = splitsOf(op, layout);
  plan.dispatches.push_back(makeReduce(
      {.kind = Op::name,
       .rows = layout.queries.vectors(),
       .parts = layout.splits,
       .rowStride = layout.splits,
       .partStride = 1,
       .simdgroups = layout.tuning.reduceSimdgroups,
       .finish = finishOf(layout.queries.heads, slotsOf(op).heads, layout.valueDim, finishChunks(layout.valueDim)),
       .sums = sums,
       .stats = stats,
       .quantized = quantizedOf(op),
       .sinks = op.options.sinks,
       .results = op.results}));
  return plan;
}

Result<void> checkScratch(const Op& op, const FlashDecodeLayout& layout) {
  const uint64_t needed = layout.splits > 1 ? layout.sumsBytes() + layout.statsBytes() : 0;
  if (!op.scratch || (op.scratch->byteCount() >= needed && isAligned(*op.scratch))) return {};
  return Error{.op = std::string(Op::name),
               .what = "there is too little scratch memory",
               .got = op.scratch->text(),
               .expected = fmt::format("u8 [{}], at a multiple of 16 bytes", needed),
               .fix = "Make it as long as the plan's scratchBytes, or leave it out."};
}

Error noMatrices() {
  return Error{.code = ErrorCode::unsupported,
               .op = std::string(Op::name),
               .what = "the device cannot run the matrix kernel",
               .got = "no device, the Host device, or a GPU whose layout of simdgroup matrices is not known",
               .expected = "a GPU on which a lane holds two neighbors of a row of an 8 x 8 matrix",
               .fix = "Use automatic."};
}

Error noOrder() {
  return Error{.code = ErrorCode::unsupported,
               .op = std::string(Op::name),
               .what = "in-kernel merging needs device-scope memory fences",
               .got = "a library of kernels that was compiled without fences for the device, or an unknown device",
               .expected = "kernels that were compiled in language version 3.2 or newer",
               .fix = "Use automatic."};
}

bool isEmpty(const Op& op) {
  return queryShape(op.queries).vectors() == 0;
}

MeasuredChoice measuredFor(const Op& op, const DeviceProfile& profile) {
  if (!profile.measuredTuning) return std::nullopt;
  return profile.measuredTuning->find(workloadOf(op, profile));
}

// Plans a valid, non-empty op.
Result<Plan> planOn(const Op& op, const DeviceProfile& profile, const std::optional<ScratchQueries>& queries = {}) {
  MNK_TRY(auto layout, layoutFor(op, profile));
  layout.scratchQueries = queries;
  MNK_TRY(checkScratch(op, layout));
  return makePlan(op, layout);
}

}  // namespace

Result<FlashDecodeLayout> layoutFor(const FlashDecode& op, const DeviceProfile& profile, MeasuredChoice choice) {
  const bool hasMatrices = profile.matrixLayout != MatrixLayout::unknown;
  if (!choice) choice = measuredFor(op, profile);
  if (!hasMatrices && op.options.kernel == FlashDecodeKernel::matrix) return noMatrices();
  if (!profile.ordersThreadgroups && op.options.merge == FlashDecodeMerge::inKernel) return noOrder();
  // A measured choice applies only to the kernel that it was measured with.
  if (choice && !canFollow(op, profile, *choice)) choice.reset();
  return FlashDecodeLayout::of(op, profile, choice);
}

Result<Plan> planAs(const FlashDecode& op, const DeviceProfile& profile, const FlashDecodeChoice& choice) {
  MNK_TRY(auto layout, layoutFor(op, profile, choice));
  return makePlan(op, layout);
}

Result<Plan> plan(const FlashDecode& op, const DeviceProfile& profile) {
  return guarded(Op::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(op));
    return isEmpty(op) ? emptyPlan() : planOn(op, profile);
  });
}

Result<Plan> plan(const FlashDecode& op, Device& device) {
  return guarded(Op::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(op));
    return isEmpty(op) ? emptyPlan() : planOn(op, *profileFor(op, device));
  });
}

Result<Plan> plan(const FlashDecode& op, const ScratchQueries& queries, Device* device) {
  return guarded(Op::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(op));
    return isEmpty(op) ? emptyPlan() : planOn(op, device ? *profileFor(op, *device) : DeviceProfile{}, queries);
  });
}

std::shared_ptr<const DeviceProfile> profileFor(const FlashDecode& op, Device& device) {
  auto profile = device.sharedProfile();
  if (profile->matrixLayout != MatrixLayout::unknown) return profile;
  const bool needsLayout = wantsPrefill(op, *profile) || wantsMatrices(op, *profile, measuredFor(op, *profile));
  return needsLayout ? device.sharedProbe() : profile;
}

}  // namespace mnk
