#include "Ops/KVCacheQuantize/KVCacheQuantize.hpp"

#include <cmath>

#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"

namespace mnk {

namespace {

std::string planeText(const KVCacheQuantize& op, const QuantizedKVPlane& plane) {
  return fmt::format("{} heads of {}", op.into.codes().heads(), plane.headDim());
}

bool isCounts(const Tensor& tensor) {
  return tensor && tensor.dtype() == DType::u32 && tensor.shape().elementCount() == 2;
}

bool isProbe(const KVCacheQuantize& op) {
  const Shape& shape = op.probe->shape();
  return *op.probe && op.probe->dtype() == DType::f32 && shape.rank() == 2 && shape[0] == op.into.codes().heads() &&
         shape[1] == op.into.keys.headDim();
}

std::optional<Overlap> quantizeOverlap(const KVCacheQuantize& op) {
  std::vector<NamedRange> sources{{"keys", rangeOf(sourceOf(op.keys, op.sourceLayout))}};
  std::vector<NamedRange> targets{{"codes of keys", op.into.keys.codes.range()}};
  if (!op.into.keys.isDense()) targets.push_back({"scales of keys", op.into.keys.scales.range()});
  addFactors(sources, op.into.keys);
  if (op.values) {
    sources.push_back({"values", rangeOf(sourceOf(*op.values, op.sourceLayout))});
    targets.push_back({"codes of values", op.into.values->codes.range()});
    if (!op.into.values->isDense()) targets.push_back({"scales of values", op.into.values->scales.range()});
    addFactors(sources, *op.into.values);
  }
  addRows(sources, op.rows);
  if (op.counts) targets.push_back({"counts", op.counts->range()});
  if (op.probe) targets.push_back({"the probe", op.probe->range()});
  return firstOverlap(sources, targets);
}

constexpr Rule<KVCacheQuantize> kQuantizeRules[] = {
    INVALID_IF(op.values && !op.into.values, "values are given but the cache has none",
               "values, and a cache of keys alone", "a cache with values",
               "Give the cache codes and scales for values, or write keys alone."),

    INVALID_IF(!isFloat(op.keys.tensor.dtype()), "the source cannot be quantized", name(op.keys.tensor.dtype()),
               "f32, f16 or bf16", "Convert the keys and values."),

    INVALID_IF(op.values.has_value() && op.values->tensor.dtype() != op.keys.tensor.dtype(),
               "values have another dtype than keys", name(op.values->tensor.dtype()),
               fmt::format("{}, as for keys", name(op.keys.tensor.dtype())),
               "Use one dtype for both, or write keys and values separately."),

    INVALID_IF(!isOf(op.keys, op.sourceLayout, op.into.codes().heads(), op.into.keys.headDim()),
               "keys do not have the cache's heads and headDim", sourceText(op.keys, op.sourceLayout),
               planeText(op, op.into.keys), "Reshape the keys, or write to a cache made for them."),

    INVALID_IF(op.values && !isOf(*op.values, op.sourceLayout, op.into.codes().heads(), op.into.values->headDim()),
               "values do not have the cache's heads and headDim", sourceText(*op.values, op.sourceLayout),
               planeText(op, *op.into.values), "Reshape the values, or write to a cache made for them."),

    INVALID_IF(op.values && !VectorLanes::canShare(op.into.keys.headDim(), op.into.values->headDim()),
               "head dims of keys and values are too different",
               fmt::format("{} and {}", op.into.keys.headDim(), op.into.values->headDim()),
               "at most 32 times the other", "Use one op for keys and one for values."),

    INVALID_IF(!op.options.hasSearch(), "the number of candidates is not supported",
               fmt::format("{}", op.options.candidates), "1, 5 or 17", "Use 5, or 17 for a little less error."),

    INVALID_IF(!op.options.areKnown(), kUnknownOption, optionsText(op.options), kKnownOptions, kNameOptions),

    INVALID_IF(op.counts && !isCounts(*op.counts), "the counts do not fit", op.counts->text(), "u32 [2]",
               "Pass a tensor of two u32."),

    INVALID_IF(op.probe && (op.into.keys.isDense() || op.into.keys.codec.name != KVCodec::Name::mlx1 ||
                            tokenCount(addressesOf(op)) > 1),
               "the probe is for one token of mlx1",
               fmt::format("{} tokens of {}", tokenCount(addressesOf(op)),
                           op.into.keys.isDense() ? "dense keys" : name(op.into.keys.codec.name)),
               "one token, and mlx1", "Leave the probe out."),

    INVALID_IF(op.probe && !isProbe(op), "the probe does not fit", op.probe->text(),
               fmt::format("f32 [{}, {}]", op.into.codes().heads(), op.into.keys.headDim()),
               "Pass f32 [heads, headDim]."),
};

constexpr Rule<KVCacheQuantize> kOverlapRules[] = {
    INVALID_IF(quantizeOverlap(op), "operands share memory", quantizeOverlap(op)->text(), "separate memory",
               "Keep what is written apart from what is read."),
};

}  // namespace

std::string optionsText(const KVQuantizeOptions& options) {
  return fmt::format("keyScale {}, valueScale {}, nonFinite {}", static_cast<uint32_t>(options.keyScale),
                     static_cast<uint32_t>(options.valueScale), static_cast<uint32_t>(options.nonFinite));
}

std::span<const Rule<KVCacheQuantize>> kvCacheQuantizeRules() {
  return kQuantizeRules;
}
std::span<const Rule<KVCacheQuantize>> kvCacheQuantizeOverlapRules() {
  return kOverlapRules;
}

KVCacheWrite addressesOf(const KVCacheQuantize& op) {
  return {.keys = op.keys,
          .values = op.values,
          .sourceLayout = op.sourceLayout,
          .sourceOffset = op.sourceOffset,
          .tokens = op.tokens,
          .sourceIsRing = op.sourceIsRing,
          .into = op.into.codes(),
          .sequence = op.sequence,
          .position = op.position,
          .rows = op.rows};
}

Result<void> checkRules(const KVCacheQuantize& op) {
  const KVCacheWrite addresses = addressesOf(op);
  MNK_TRY(checkRules(cacheSourceRules(), addresses, KVCacheQuantize::name));
  MNK_TRY(checkRules(quantizedKVCacheRules(), op.into, KVCacheQuantize::name));
  MNK_TRY(checkRules(cacheLayoutRules(), addresses, KVCacheQuantize::name));
  MNK_TRY(checkRules(kvCacheQuantizeRules(), op, KVCacheQuantize::name));
  MNK_TRY(checkRules(cacheAddressRules(), addresses, KVCacheQuantize::name));
  return checkRules(kvCacheQuantizeOverlapRules(), op, KVCacheQuantize::name);
}

namespace {

// Keys or values: a source, where its codes go, and the indices that the kernel knows them by.
struct TargetPlane {
  HeadsView source;
  const QuantizedKVPlane& into;
  uint32_t sourceIndex;
  uint32_t codesIndex;
  uint32_t scalesIndex;
  uint32_t meansIndex;
};

std::vector<TargetPlane> planesOf(const KVCacheQuantize& op) {
  std::vector<TargetPlane> planes{{sourceOf(op.keys, op.sourceLayout), op.into.keys, kKVCacheQuantizeKeys,
                                   kKVCacheQuantizeKeyCodes, kKVCacheQuantizeKeyScales, kKVCacheQuantizeKeyMeans}};
  if (op.values) {
    planes.push_back({sourceOf(*op.values, op.sourceLayout), *op.into.values, kKVCacheQuantizeValues,
                      kKVCacheQuantizeValueCodes, kKVCacheQuantizeValueScales, kKVCacheQuantizeValueMeans});
  }
  return planes;
}

void bindQuantizedPlane(Dispatch& dispatch, const CacheAddressing& addressing, const TargetPlane& plane) {
  const KVCodecSizes row = plane.into.vectorSizes();
  Binding source = addressing.sourceBinding(plane.sourceIndex, plane.source, Access::read);
  Binding codes = Binding::whole(plane.codesIndex, plane.into.codes, Access::write);
  codes.writes = addressing.cacheRegions(row.codeBytes);
  dispatch.buffers.insert(dispatch.buffers.end(), {std::move(source), std::move(codes)});
  if (!plane.into.isDense()) {
    Binding scales = Binding::whole(plane.scalesIndex, plane.into.scales, Access::write);
    scales.writes = addressing.cacheRegions(row.scaleBytes);
    dispatch.buffers.push_back(std::move(scales));
  }
  if (plane.into.means) dispatch.buffers.push_back(Binding::whole(plane.meansIndex, *plane.into.means, Access::read));
  if (plane.into.channelScales) {
    dispatch.buffers.push_back(Binding::whole(kKVCacheQuantizeChannelScales, *plane.into.channelScales, Access::read));
  }
  addressing.countWritten(dispatch, row.byteCount());
}

uint32_t flagsOf(const KVQuantizeOptions& options) {
  return (options.keyScale == KVScaleRule::unbiased ? uint32_t{kKVUnbiasedKeys} : 0) |
         (options.valueScale == KVScaleRule::unbiased ? uint32_t{kKVUnbiasedValues} : 0) |
         (options.nonFinite == KVNonFinite::propagate ? uint32_t{kKVPropagatesNonFinite} : 0);
}

Dispatch makeQuantizeDispatch(const KVCacheQuantize& op) {
  const std::vector<TargetPlane> planes = planesOf(op);
  const CacheAddressing addressing(addressesOf(op));
  const uint64_t heads = addressing.op.into.heads();
  std::vector<HeadsView> sources;
  for (const TargetPlane& plane : planes) sources.push_back(plane.source);
  const QuantizedKVPlane* values = op.values ? &*op.into.values : nullptr;
  const VectorLanes lanes = VectorLanes::forPlanes(heads * addressing.params().tokens, op.into.keys, values);
  KVCacheQuantizeParams params{
      .address = addressing.params(),
      .keys = codecPlaneOf(op.into.keys, lanes, heads),
      .values = {},
      .heads = static_cast<uint32_t>(heads),
      .flags = flagsOf(op.options),
      .candidates = op.options.candidates,
      .candidateSpacing = op.options.candidates > 1 ? 1 / std::sqrt(op.options.candidates - 1.0f) : 0};
  if (values) params.values = codecPlaneOf(*values, lanes, heads);

  Dispatch dispatch;
  dispatch.kind = KVCacheQuantize::name;
  dispatch.kernel.function = fmt::format("kvCacheQuantize_{}", lanes.chunks);
  dispatch.kernel.constants = {
      {kKVCacheQuantizeHasCounts, op.counts.has_value()},
      {kKVCacheQuantizeHasProbe, op.probe.has_value()},
      {kKVCacheQuantizeHasSearch, op.into.codecName() == KVCodec::Name::turbo && op.options.candidates > 1},
      {kKVCacheQuantizeAppliesRoPE, false},
      {kRotaryAppendQueryType, uint32_t{kFloat32}},
      {kMultiRoPEHasPositions, false},
      {kMultiRoPEHasOffsets, false},
      {kMultiRoPEIsInterleaved, false},
      {kMultiRoPEIsVectorized, false}};
  for (const auto& more : {addressing.constants(), codecConstants(op.into.keys, values, lanes, sources)}) {
    dispatch.kernel.constants.insert(dispatch.kernel.constants.end(), more.begin(), more.end());
  }
  dispatch.inlines.push_back(InlineBytes::of(kKVCacheQuantizeParams, params));
  for (const TargetPlane& plane : planes) bindQuantizedPlane(dispatch, addressing, plane);
  addressing.bindRows(dispatch, kKVCacheQuantizeSequences, kKVCacheQuantizePositions);
  if (op.counts) {
    dispatch.buffers.push_back(Binding::whole(kKVCacheQuantizeCounts, *op.counts, Access::readWrite));
  }
  if (op.probe) dispatch.buffers.push_back(Binding::whole(kKVCacheQuantizeProbe, *op.probe, Access::write));
  dispatch.grid = gridOf(lanes, uint64_t{params.keys.simdgroups} + params.values.simdgroups, params.address.tokens);
  return dispatch;
}

}  // namespace

Result<Plan> plan(const KVCacheQuantize& op) {
  return guarded(KVCacheQuantize::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(op));
    Plan plan{.op = std::string(KVCacheQuantize::name), .dispatches = {}};
    if (storesNothing(addressesOf(op))) return plan;
    plan.dispatches.push_back(makeQuantizeDispatch(op));
    return plan;
  });
}

}  // namespace mnk
