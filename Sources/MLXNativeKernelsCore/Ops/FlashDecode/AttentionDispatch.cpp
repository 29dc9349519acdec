#include "Ops/FlashDecode/AttentionDispatch.hpp"

#include <algorithm>

#include "Ops/Common/VectorLanes.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

std::vector<Region> allOf(uint64_t bytes) {
  return {{.offset = 0, .rowBytes = bytes, .rowStride = bytes, .rows = 1}};
}

}  // namespace

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

MemoryPart MemoryPart::of(const Tensor& tensor) {
  return {tensor.buffer(), tensor.byteOffset(), tensor.byteCount()};
}

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

}  // namespace mnk
