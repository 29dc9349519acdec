#include "Ops/RotaryAppend/RotaryAppend.hpp"

#include <algorithm>
#include <stdexcept>

#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantize.hpp"
#include "Ops/KVCacheWrite/KVCacheWrite.hpp"
#include "Ops/MultiRoPE/MultiRoPE.hpp"
#include "RotaryAppend/RotaryAppendTypes.h"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

using Strides = HeadsView::Strides;

uint32_t to32Bits(uint64_t value) {
  return static_cast<uint32_t>(value);  // the rules bound every extent
}

uint64_t tokenBytes(const HeadsView& queries) {
  const Strides s = queries.resolved();
  return s.heads * s.headDim * byteSize(queries.tensor.dtype());
}

MultiRoPEParams rotaryAppendParams(const MultiRoPE& rotation, uint64_t pairsPerUnit, uint64_t headsPerGroup) {
  const Strides queries = rotation.queries.resolved();
  Strides rotated = queries;
  rotated.headStride = queries.headDim;
  rotated.tokenStride = queries.heads * queries.headDim;
  rotated.sequenceStride = queries.tokens * rotated.tokenStride;
  MultiRoPEParams params = rotaryParams(rotation, pairsPerUnit, headsPerGroup);
  params.queries = rotaryOperand(queries, rotated, headsPerGroup);
  params.keys = rotaryOperand(rotation.keys->resolved(), {}, headsPerGroup);
  return params;
}

bool areAlignedToFour(std::initializer_list<const HeadsView*> views) {
  return std::all_of(views.begin(), views.end(),
                     [](const HeadsView* view) { return elementAlignment(*view, kVectorPairs) == kVectorPairs; });
}

// Reads the queries of the tokens that are stored, and writes them to scratch memory.
void bindQueries(Dispatch& dispatch, const RotaryAppend& op, const CacheAddressing& addressing, uint32_t from,
                 uint32_t into) {
  const HeadsView& queries = op.rotation.queries;
  const uint64_t bytes = tokenBytes(queries), tokens = addressing.placement.stored();
  Binding source = addressing.sourceBinding(from, queries, Access::read);
  dispatch.buffers.push_back(std::move(source));
  dispatch.buffers.push_back({.index = into,
                              .buffer = nullptr,
                              .offset = 0,
                              .length = queries.resolved().totalTokens() * bytes,
                              .reads = {},
                              .writes = {{.offset = addressing.op.sourceOffset * bytes, .rowBytes = tokens * bytes}}});
}

Dispatch makeDense(const RotaryAppend& op, const KVCacheWrite& write) {
  const MultiRoPE& rotation = op.rotation;
  const CacheAddressing addressing(write);
  const KVCacheView values = valuesOf(write.into);
  const uint64_t keyDim = write.into.headDim(), valueDim = values.headDim();
  const bool isVectorized = hasPairsInFours(rotation) && valueDim % (2 * kVectorPairs) == 0 &&
                            areAlignedToFour({&rotation.queries, &write.keys, &*write.values}) &&
                            isAlignedToFour(write.into.keys) && isAlignedToFour(*write.into.values);
  const uint64_t pairs = isVectorized ? kVectorPairs : 1;
  const uint64_t headsPerGroup = rotatedHeadsPerGroup(addressing.placement.stored());
  const RotaryAppendParams params{.rotation = rotaryAppendParams(rotation, pairs, headsPerGroup),
                                  .address = addressing.params(),
                                  .keyUnits = to32Bits(keyDim / (2 * pairs)),
                                  .valueUnits = to32Bits((valueDim + 2 * pairs - 1) / (2 * pairs)),
                                  .keyDim = to32Bits(keyDim),
                                  .valueDim = to32Bits(valueDim)};
  Dispatch dispatch;
  dispatch.kernel.function = "rotaryAppend";
  dispatch.kernel.constants = rotaryConstants(rotation, isVectorized);
  const auto address = addressing.constants();
  dispatch.kernel.constants.insert(dispatch.kernel.constants.end(), address.begin(), address.end());
  const auto typeOf = [](const Tensor& tensor) { return static_cast<uint32_t>(tensor.dtype()); };
  dispatch.kernel.constants.insert(dispatch.kernel.constants.end(),
                                   {{kRotaryAppendQueryType, typeOf(rotation.queries.tensor)},
                                    {kRotaryAppendKeyType, typeOf(write.keys.tensor)},
                                    {kRotaryAppendCacheType, typeOf(write.into.keys)}});
  dispatch.inlines.push_back(InlineBytes::of(kRotaryAppendParams, params));
  bindQueries(dispatch, op, addressing, kRotaryAppendQueries, kRotaryAppendRotatedQueries);
  bindPlane(dispatch, addressing, {write.keys, write.into.keys, keyDim, kRotaryAppendKeys, kRotaryAppendKeyCache});
  bindPlane(dispatch, addressing,
            {*write.values, *write.into.values, valueDim, kRotaryAppendValues, kRotaryAppendValueCache});
  addressing.bindRows(dispatch, kRotaryAppendSequences, kRotaryAppendSlots);
  bindRotary(dispatch, rotation, {kRotaryAppendFrequencies, kRotaryAppendPositions, kRotaryAppendOffsets},
             op.firstToken);
  dispatch.grid.extent = {std::max(params.keyUnits, params.valueUnits),
                          params.rotation.queries.headGroups + 2 * params.rotation.keys.headGroups,
                          params.address.tokens};
  return dispatch;
}

uint32_t& constantOf(Dispatch& dispatch, uint32_t index) {
  for (FunctionConstant& constant : dispatch.kernel.constants) {
    if (constant.index == index) return constant.bits;
  }
  throw std::logic_error("a kernel lacks a constant that a rotation sets");
}

// Adds the rotation to the dispatch of a KVCacheQuantize.
void addRotation(Dispatch& dispatch, const RotaryAppend& op, const KVCacheQuantize& quantize) {
  const MultiRoPE& rotation = op.rotation;
  const bool isVectorized = hasPairsInFours(rotation) && areAlignedToFour({&rotation.queries, &*rotation.keys});
  for (const FunctionConstant& constant : rotaryConstants(rotation, isVectorized)) {
    constantOf(dispatch, constant.index) = constant.bits;
  }
  constantOf(dispatch, kKVCacheQuantizeAppliesRoPE) = true;
  constantOf(dispatch, kRotaryAppendQueryType) = static_cast<uint32_t>(rotation.queries.tensor.dtype());
  dispatch.inlines.push_back(InlineBytes::of(kKVCacheQuantizeRotation, rotaryAppendParams(rotation, 1, 1)));
  const CacheAddressing addressing(addressesOf(quantize));
  bindQueries(dispatch, op, addressing, kKVCacheQuantizeQueries, kKVCacheQuantizeRotatedQueries);
  bindRotary(dispatch, rotation,
             {kKVCacheQuantizeFrequencies, kKVCacheQuantizeRotaryPositions, kKVCacheQuantizeRotaryOffsets},
             op.firstToken);
  // Lanes share queries as they share keys, in separate threadgroups.
  const HeadsView::Strides queries = rotation.queries.resolved();
  const VectorLanes lanes =
      VectorLanes::forPlanes(addressing.op.into.heads() * addressing.params().tokens, quantize.into.keys,
                             quantize.values ? &*quantize.into.values : nullptr);
  const uint64_t together = dispatch.grid.threadgroup[0] / 32;
  dispatch.grid.extent[0] += to32Bits((lanes.simdgroupsOf(queries.headDim, queries.heads) + together - 1) / together);
}

}  // namespace

uint64_t rotatedQueryBytes(const HeadsView& queries) {
  constexpr uint64_t kUnit = 16;  // any device can bind memory at multiples of it
  return (queries.resolved().totalTokens() * tokenBytes(queries) + kUnit - 1) / kUnit * kUnit;
}

Result<void> checkRotation(const MultiRoPE& op) {
  MNK_TRY(checkRules(rotarySourceRules(), op, RotaryAppend::name));
  const RotaryCheck check{.rotary = op.rotary,
                          .headDim = op.queries.resolved().headDim,
                          .axes = axisCount(op),
                          .axesDiffer = axesDiffer(op)};
  return checkRules(rotaryRules(), check, RotaryAppend::name);
}

Result<Plan> plan(const RotaryAppend& op) {
  return guarded(RotaryAppend::name, [&]() -> Result<Plan> {
    Plan planned{.op = std::string(RotaryAppend::name), .dispatches = {}};
    if (const auto* quantize = std::get_if<KVCacheQuantize>(&op.append)) {
      MNK_TRY(auto stored, plan(*quantize));
      planned.dispatches = std::move(stored.dispatches);
      for (Dispatch& dispatch : planned.dispatches) addRotation(dispatch, op, *quantize);
    } else {
      const auto& write = std::get<KVCacheWrite>(op.append);
      MNK_TRY(checkRules(kvCacheWriteRules(), write, KVCacheWrite::name));
      if (tokenCount(write) != 0) planned.dispatches.push_back(makeDense(op, write));
    }
    for (Dispatch& dispatch : planned.dispatches) dispatch.kind = RotaryAppend::name;
    planned.scratchBytes = rotatedQueryBytes(op.rotation.queries);
    return planned;
  });
}

}  // namespace mnk
