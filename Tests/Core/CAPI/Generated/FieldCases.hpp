// Generated from Sources/API by generate.py: change the description instead.
// Each struct of the API with one field after another changed, and whether two have the same fields.
#pragma once
#include <numeric>
#include <string_view>

#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"

namespace mnk::test {

inline bool same(const Tensor& a, const Tensor& b) {
  return a.buffer() == b.buffer();
}
template <typename T>
bool same(const T& a, const T& b) requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) {
  return a == b;
}
inline bool same(const std::string& a, const std::string& b) {
  return a == b;
}
template <typename T, size_t size>
bool same(const std::array<T, size>& a, const std::array<T, size>& b) {
  return a == b;
}
template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a == b;
}

inline bool same(const AttentionOptions& a, const AttentionOptions& b);
inline bool same(const AttentionPartials& a, const AttentionPartials& b);
inline bool same(const AttentionResults& a, const AttentionResults& b);
inline bool same(const AttendedSequence& a, const AttendedSequence& b);
inline bool same(const SlidingWindow& a, const SlidingWindow& b);
inline bool same(const KVQuantizeOptions& a, const KVQuantizeOptions& b);
inline bool same(const KVQuantizedStorage& a, const KVQuantizedStorage& b);
inline bool same(const AttentionCacheDescriptor& a, const AttentionCacheDescriptor& b);
inline bool same(const HeadsView::Strides& a, const HeadsView::Strides& b);
inline bool same(const HeadsView& a, const HeadsView& b);
inline bool same(const KVCacheView& a, const KVCacheView& b);
inline bool same(const KVCodec& a, const KVCodec& b);
inline bool same(const QuantizedKVPlane& a, const QuantizedKVPlane& b);
inline bool same(const QuantizedKVCacheView& a, const QuantizedKVCacheView& b);
inline bool same(const FlashDecode& a, const FlashDecode& b);
inline bool same(const MergePartials& a, const MergePartials& b);
inline bool same(const HostOptions& a, const HostOptions& b);
inline bool same(const KVCacheWrite::Rows& a, const KVCacheWrite::Rows& b);
inline bool same(const KVCacheQuantize& a, const KVCacheQuantize& b);
inline bool same(const KVCacheDequantize& a, const KVCacheDequantize& b);
inline bool same(const Hadamard& a, const Hadamard& b);
inline bool same(const KVCacheWrite& a, const KVCacheWrite& b);
inline bool same(const RotaryEmbedding::YaRN& a, const RotaryEmbedding::YaRN& b);
inline bool same(const RotaryEmbedding& a, const RotaryEmbedding& b);
inline bool same(const RotaryStep& a, const RotaryStep& b);
inline bool same(const MultiRoPE& a, const MultiRoPE& b);

inline bool same(const RotaryPositions& a, const RotaryPositions& b);
inline bool same(const RotaryPositions::List& a, const RotaryPositions::List& b) {
  return a.numbers == b.numbers && a.axes == b.axes;
}
inline bool same(const std::shared_ptr<const PositionSource>& a, const std::shared_ptr<const PositionSource>& b) {
  return a == b;
}
template <typename... Ts>
bool same(const std::variant<Ts...>& a, const std::variant<Ts...>& b) {
  return a.index() == b.index() &&
         std::visit([&](const auto& held) { return same(held, std::get<std::remove_cvref_t<decltype(held)>>(b)); }, a);
}
inline bool same(const RotaryPositions& a, const RotaryPositions& b) {
  return same(a.source, b.source);
}
inline RowIndices changedRowIndices(const Tensor&, const Tensor& other) {
  return other;
}
inline RotaryOffsets changedRotaryOffsets(const Tensor&, const Tensor&) {
  return std::vector<int32_t>{3, 5};
}
inline RotaryPositions changedRotaryPositions(const Tensor&, const Tensor&) {
  return {std::vector<int32_t>{1, 2, 3, 4}, 2};
}

inline bool same(const AttentionOptions& a, const AttentionOptions& b) {
  return same(a.scale, b.scale) && same(a.isCausal, b.isCausal) && same(a.window, b.window) &&
         same(a.windowSeesPinned, b.windowSeesPinned) && same(a.softcap, b.softcap) &&
         a.mask.has_value() == b.mask.has_value() && (!a.mask || same(*a.mask, *b.mask)) &&
         a.slopes.has_value() == b.slopes.has_value() && (!a.slopes || same(*a.slopes, *b.slopes)) &&
         a.sinks.has_value() == b.sinks.has_value() && (!a.sinks || same(*a.sinks, *b.sinks)) &&
         same(a.splits, b.splits) && same(a.kernel, b.kernel) && same(a.merge, b.merge);
}
inline bool same(const AttentionPartials& a, const AttentionPartials& b) {
  return same(a.sums, b.sums) && same(a.stats, b.stats);
}
inline bool same(const AttentionResults& a, const AttentionResults& b) {
  return a.output.has_value() == b.output.has_value() && (!a.output || same(*a.output, *b.output)) &&
         a.partials.has_value() == b.partials.has_value() && (!a.partials || same(*a.partials, *b.partials)) &&
         a.logSumExp.has_value() == b.logSumExp.has_value() && (!a.logSumExp || same(*a.logSumExp, *b.logSumExp));
}
inline bool same(const AttendedSequence& a, const AttendedSequence& b) {
  return same(a.sequence, b.sequence) && same(a.length, b.length) && same(a.highest, b.highest) &&
         same(a.rows, b.rows) && a.position.has_value() == b.position.has_value() &&
         (!a.position || same(*a.position, *b.position));
}
inline bool same(const SlidingWindow& a, const SlidingWindow& b) {
  return same(a.window, b.window) && same(a.maxRows, b.maxRows) && same(a.maxDraft, b.maxDraft);
}
inline bool same(const KVQuantizeOptions& a, const KVQuantizeOptions& b) {
  return same(a.candidates, b.candidates) && same(a.keyScale, b.keyScale) && same(a.valueScale, b.valueScale) &&
         same(a.nonFinite, b.nonFinite);
}
inline bool same(const KVQuantizedStorage& a, const KVQuantizedStorage& b) {
  return same(a.codec, b.codec) && same(a.keyBits, b.keyBits) && same(a.valueBits, b.valueBits) &&
         same(a.scaleFactor, b.scaleFactor) && same(a.options, b.options) &&
         a.keyMeans.has_value() == b.keyMeans.has_value() && (!a.keyMeans || same(*a.keyMeans, *b.keyMeans)) &&
         a.valueMeans.has_value() == b.valueMeans.has_value() &&
         (!a.valueMeans || same(*a.valueMeans, *b.valueMeans)) &&
         a.keyChannelScales.has_value() == b.keyChannelScales.has_value() &&
         (!a.keyChannelScales || same(*a.keyChannelScales, *b.keyChannelScales)) && same(a.planes, b.planes);
}
inline bool same(const AttentionCacheDescriptor& a, const AttentionCacheDescriptor& b) {
  return same(a.kvHeads, b.kvHeads) && same(a.headDim, b.headDim) && same(a.valueHeadDim, b.valueHeadDim) &&
         same(a.capacity, b.capacity) && same(a.sequences, b.sequences) && same(a.dtype, b.dtype) &&
         same(a.whenFull, b.whenFull) && same(a.pinned, b.pinned) &&
         a.quantized.has_value() == b.quantized.has_value() && (!a.quantized || same(*a.quantized, *b.quantized)) &&
         a.slidingWindow.has_value() == b.slidingWindow.has_value() &&
         (!a.slidingWindow || same(*a.slidingWindow, *b.slidingWindow)) && same(a.latentDim, b.latentDim) &&
         same(a.isStorageOnly, b.isStorageOnly);
}
inline bool same(const HeadsView::Strides& a, const HeadsView::Strides& b) {
  return same(a.sequences, b.sequences) && same(a.tokens, b.tokens) && same(a.heads, b.heads) &&
         same(a.headDim, b.headDim) && same(a.offset, b.offset) && same(a.sequenceStride, b.sequenceStride) &&
         same(a.tokenStride, b.tokenStride) && same(a.headStride, b.headStride);
}
inline bool same(const HeadsView& a, const HeadsView& b) {
  return same(a.tensor, b.tensor) && same(a.layout, b.layout) && a.strides.has_value() == b.strides.has_value() &&
         (!a.strides || same(*a.strides, *b.strides));
}
inline bool same(const KVCacheView& a, const KVCacheView& b) {
  return same(a.keys, b.keys) && a.values.has_value() == b.values.has_value() &&
         (!a.values || same(*a.values, *b.values)) && same(a.layout, b.layout) && same(a.wrap, b.wrap) &&
         same(a.pinned, b.pinned) && same(a.latentDim, b.latentDim);
}
inline bool same(const KVCodec& a, const KVCodec& b) {
  return same(a.name, b.name) && same(a.bits, b.bits) && same(a.scaleFactor, b.scaleFactor);
}
inline bool same(const QuantizedKVPlane& a, const QuantizedKVPlane& b) {
  return same(a.codec, b.codec) && same(a.codes, b.codes) && same(a.scales, b.scales) &&
         a.means.has_value() == b.means.has_value() && (!a.means || same(*a.means, *b.means)) &&
         a.channelScales.has_value() == b.channelScales.has_value() &&
         (!a.channelScales || same(*a.channelScales, *b.channelScales));
}
inline bool same(const QuantizedKVCacheView& a, const QuantizedKVCacheView& b) {
  return same(a.keys, b.keys) && a.values.has_value() == b.values.has_value() &&
         (!a.values || same(*a.values, *b.values)) && same(a.layout, b.layout) && same(a.wrap, b.wrap) &&
         same(a.pinned, b.pinned) && same(a.latentDim, b.latentDim);
}
inline bool same(const FlashDecode& a, const FlashDecode& b) {
  return same(a.queries, b.queries) && same(a.cache, b.cache) && same(a.sequences, b.sequences) &&
         same(a.results, b.results) && same(a.options, b.options) && a.scratch.has_value() == b.scratch.has_value() &&
         (!a.scratch || same(*a.scratch, *b.scratch));
}
inline bool same(const MergePartials& a, const MergePartials& b) {
  return same(a.parts, b.parts) && a.sinks.has_value() == b.sinks.has_value() &&
         (!a.sinks || same(*a.sinks, *b.sinks)) && same(a.results, b.results);
}
inline bool same(const HostOptions& a, const HostOptions& b) {
  return same(a.workers, b.workers) && same(a.orderSeed, b.orderSeed) && same(a.checking, b.checking) &&
         same(a.allowsSameValue, b.allowsSameValue) && same(a.perturbsResults, b.perturbsResults) &&
         same(a.level, b.level) && same(a.compiler, b.compiler);
}
inline bool same(const KVCacheWrite::Rows& a, const KVCacheWrite::Rows& b) {
  return same(a.sequences, b.sequences) && same(a.positions, b.positions);
}
inline bool same(const KVCacheQuantize& a, const KVCacheQuantize& b) {
  return same(a.keys, b.keys) && a.values.has_value() == b.values.has_value() &&
         (!a.values || same(*a.values, *b.values)) && same(a.sourceLayout, b.sourceLayout) &&
         same(a.sourceOffset, b.sourceOffset) && a.tokens.has_value() == b.tokens.has_value() &&
         (!a.tokens || same(*a.tokens, *b.tokens)) && same(a.sourceIsRing, b.sourceIsRing) && same(a.into, b.into) &&
         same(a.sequence, b.sequence) && same(a.position, b.position) && a.rows.has_value() == b.rows.has_value() &&
         (!a.rows || same(*a.rows, *b.rows)) && same(a.options, b.options) &&
         a.counts.has_value() == b.counts.has_value() && (!a.counts || same(*a.counts, *b.counts)) &&
         a.probe.has_value() == b.probe.has_value() && (!a.probe || same(*a.probe, *b.probe));
}
inline bool same(const KVCacheDequantize& a, const KVCacheDequantize& b) {
  return same(a.from, b.from) && same(a.sequence, b.sequence) && same(a.position, b.position) &&
         a.keys.has_value() == b.keys.has_value() && (!a.keys || same(*a.keys, *b.keys)) &&
         a.values.has_value() == b.values.has_value() && (!a.values || same(*a.values, *b.values)) &&
         same(a.layout, b.layout) && same(a.domain, b.domain);
}
inline bool same(const Hadamard& a, const Hadamard& b) {
  return same(a.from, b.from) && a.into.has_value() == b.into.has_value() && (!a.into || same(*a.into, *b.into)) &&
         a.signs.has_value() == b.signs.has_value() && (!a.signs || same(*a.signs, *b.signs)) &&
         same(a.isInverse, b.isInverse);
}
inline bool same(const KVCacheWrite& a, const KVCacheWrite& b) {
  return same(a.keys, b.keys) && a.values.has_value() == b.values.has_value() &&
         (!a.values || same(*a.values, *b.values)) && same(a.sourceLayout, b.sourceLayout) &&
         same(a.sourceOffset, b.sourceOffset) && a.tokens.has_value() == b.tokens.has_value() &&
         (!a.tokens || same(*a.tokens, *b.tokens)) && same(a.sourceIsRing, b.sourceIsRing) && same(a.into, b.into) &&
         same(a.sequence, b.sequence) && same(a.position, b.position) && a.rows.has_value() == b.rows.has_value() &&
         (!a.rows || same(*a.rows, *b.rows));
}
inline bool same(const RotaryEmbedding::YaRN& a, const RotaryEmbedding::YaRN& b) {
  return same(a.originalContext, b.originalContext) && same(a.extensionFactor, b.extensionFactor) &&
         same(a.attentionFactor, b.attentionFactor) && same(a.betaFast, b.betaFast) && same(a.betaSlow, b.betaSlow) &&
         same(a.roundsCorners, b.roundsCorners);
}
inline bool same(const RotaryEmbedding& a, const RotaryEmbedding& b) {
  return same(a.layout, b.layout) && same(a.sections, b.sections) && same(a.base, b.base) &&
         same(a.ropeDim, b.ropeDim) && same(a.pairing, b.pairing) && same(a.otherAxis, b.otherAxis) &&
         same(a.scale, b.scale) && same(a.frequencyFactors, b.frequencyFactors) &&
         a.yarn.has_value() == b.yarn.has_value() && (!a.yarn || same(*a.yarn, *b.yarn)) &&
         same(a.isInverse, b.isInverse);
}
inline bool same(const RotaryStep& a, const RotaryStep& b) {
  return same(a.embedding, b.embedding) && a.positions.has_value() == b.positions.has_value() &&
         (!a.positions || same(*a.positions, *b.positions)) && a.offsets.has_value() == b.offsets.has_value() &&
         (!a.offsets || same(*a.offsets, *b.offsets));
}
inline bool same(const MultiRoPE& a, const MultiRoPE& b) {
  return same(a.queries, b.queries) && a.keys.has_value() == b.keys.has_value() &&
         (!a.keys || same(*a.keys, *b.keys)) && a.rotatedQueries.has_value() == b.rotatedQueries.has_value() &&
         (!a.rotatedQueries || same(*a.rotatedQueries, *b.rotatedQueries)) &&
         a.rotatedKeys.has_value() == b.rotatedKeys.has_value() &&
         (!a.rotatedKeys || same(*a.rotatedKeys, *b.rotatedKeys)) && same(a.positions, b.positions) &&
         a.offsets.has_value() == b.offsets.has_value() && (!a.offsets || same(*a.offsets, *b.offsets)) &&
         same(a.rotary, b.rotary);
}
inline AttentionOptions plainAttentionOptions(const Tensor&) {
  AttentionOptions core;
  return core;
}
inline AttentionOptions changedAttentionOptions(const Tensor& tensor, const Tensor& other) {
  AttentionOptions core = plainAttentionOptions(tensor);
  core.scale = 7.5;
  core.isCausal = false;
  core.window = 9;
  core.windowSeesPinned = true;
  core.softcap = 11.5;
  core.mask = other;
  core.slopes = other;
  core.sinks = other;
  core.splits = 15;
  core.kernel = AttentionOptions::Kernel::matrix;
  core.merge = AttentionOptions::Merge::inKernel;
  static_cast<void>(other);
  return core;
}
inline AttentionPartials plainAttentionPartials(const Tensor& tensor) {
  AttentionPartials core;
  core.sums = tensor;
  core.stats = tensor;
  return core;
}
inline AttentionPartials changedAttentionPartials(const Tensor& tensor, const Tensor& other) {
  AttentionPartials core = plainAttentionPartials(tensor);
  core.sums = other;
  core.stats = other;
  static_cast<void>(other);
  return core;
}
inline AttentionResults plainAttentionResults(const Tensor&) {
  AttentionResults core;
  return core;
}
inline AttentionResults changedAttentionResults(const Tensor& tensor, const Tensor& other) {
  AttentionResults core = plainAttentionResults(tensor);
  core.output = other;
  core.partials = changedAttentionPartials(tensor, other);
  core.logSumExp = other;
  static_cast<void>(other);
  return core;
}
inline AttendedSequence plainAttendedSequence(const Tensor&) {
  AttendedSequence core;
  return core;
}
inline AttendedSequence changedAttendedSequence(const Tensor& tensor, const Tensor& other) {
  AttendedSequence core = plainAttendedSequence(tensor);
  core.sequence = 7;
  core.length = 8;
  core.highest = 9;
  core.rows = 10;
  core.position = 11;
  static_cast<void>(other);
  return core;
}
inline SlidingWindow plainSlidingWindow(const Tensor&) {
  SlidingWindow core;
  return core;
}
inline SlidingWindow changedSlidingWindow(const Tensor& tensor, const Tensor& other) {
  SlidingWindow core = plainSlidingWindow(tensor);
  core.window = 7;
  core.maxRows = 8;
  core.maxDraft = 9;
  static_cast<void>(other);
  return core;
}
inline KVQuantizeOptions plainKVQuantizeOptions(const Tensor&) {
  KVQuantizeOptions core;
  return core;
}
inline KVQuantizeOptions changedKVQuantizeOptions(const Tensor& tensor, const Tensor& other) {
  KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
  core.candidates = 7;
  core.keyScale = KVScaleRule::leastSquares;
  core.valueScale = KVScaleRule::unbiased;
  core.nonFinite = KVNonFinite::zero;
  static_cast<void>(other);
  return core;
}
inline KVQuantizedStorage plainKVQuantizedStorage(const Tensor&) {
  KVQuantizedStorage core;
  return core;
}
inline KVQuantizedStorage changedKVQuantizedStorage(const Tensor& tensor, const Tensor& other) {
  KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
  core.codec = KVCodec::Name::mlx1Affine4;
  core.keyBits = 8;
  core.valueBits = 9;
  core.scaleFactor = 10.5;
  core.options = changedKVQuantizeOptions(tensor, other);
  core.keyMeans = other;
  core.valueMeans = other;
  core.keyChannelScales = other;
  core.planes = KVQuantizedPlanes::values;
  static_cast<void>(other);
  return core;
}
inline AttentionCacheDescriptor plainAttentionCacheDescriptor(const Tensor&) {
  AttentionCacheDescriptor core;
  return core;
}
inline AttentionCacheDescriptor changedAttentionCacheDescriptor(const Tensor& tensor, const Tensor& other) {
  AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
  core.kvHeads = 7;
  core.headDim = 8;
  core.valueHeadDim = 9;
  core.capacity = 10;
  core.sequences = 11;
  core.dtype = DType::i32;
  core.whenFull = KVWrap::ring;
  core.pinned = 14;
  core.quantized = changedKVQuantizedStorage(tensor, other);
  core.slidingWindow = changedSlidingWindow(tensor, other);
  core.latentDim = 17;
  core.isStorageOnly = true;
  static_cast<void>(other);
  return core;
}
inline HeadsView::Strides plainHeadsViewStrides(const Tensor&) {
  HeadsView::Strides core;
  return core;
}
inline HeadsView::Strides changedHeadsViewStrides(const Tensor& tensor, const Tensor& other) {
  HeadsView::Strides core = plainHeadsViewStrides(tensor);
  core.sequences = 7;
  core.tokens = 8;
  core.heads = 9;
  core.headDim = 10;
  core.offset = 11;
  core.sequenceStride = 12;
  core.tokenStride = 13;
  core.headStride = 14;
  static_cast<void>(other);
  return core;
}
inline HeadsView plainHeadsView(const Tensor& tensor) {
  HeadsView core;
  core.tensor = tensor;
  return core;
}
inline HeadsView changedHeadsView(const Tensor& tensor, const Tensor& other) {
  HeadsView core = plainHeadsView(tensor);
  core.tensor = other;
  core.layout = KVLayout::headMajor;
  core.strides = changedHeadsViewStrides(tensor, other);
  static_cast<void>(other);
  return core;
}
inline KVCacheView plainKVCacheView(const Tensor& tensor) {
  KVCacheView core;
  core.keys = tensor;
  return core;
}
inline KVCacheView changedKVCacheView(const Tensor& tensor, const Tensor& other) {
  KVCacheView core = plainKVCacheView(tensor);
  core.keys = other;
  core.values = other;
  core.layout = KVLayout::tokenMajor;
  core.wrap = KVWrap::ring;
  core.pinned = 11;
  core.latentDim = 12;
  static_cast<void>(other);
  return core;
}
inline KVCodec plainKVCodec(const Tensor&) {
  KVCodec core;
  return core;
}
inline KVCodec changedKVCodec(const Tensor& tensor, const Tensor& other) {
  KVCodec core = plainKVCodec(tensor);
  core.name = KVCodec::Name::mlx1Affine4;
  core.bits = 8;
  core.scaleFactor = 9.5;
  static_cast<void>(other);
  return core;
}
inline QuantizedKVPlane plainQuantizedKVPlane(const Tensor& tensor) {
  QuantizedKVPlane core;
  core.codes = tensor;
  return core;
}
inline QuantizedKVPlane changedQuantizedKVPlane(const Tensor& tensor, const Tensor& other) {
  QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
  core.codec = changedKVCodec(tensor, other);
  core.codes = other;
  core.scales = other;
  core.means = other;
  core.channelScales = other;
  static_cast<void>(other);
  return core;
}
inline QuantizedKVCacheView plainQuantizedKVCacheView(const Tensor& tensor) {
  QuantizedKVCacheView core;
  core.keys = plainQuantizedKVPlane(tensor);
  return core;
}
inline QuantizedKVCacheView changedQuantizedKVCacheView(const Tensor& tensor, const Tensor& other) {
  QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
  core.keys = changedQuantizedKVPlane(tensor, other);
  core.values = changedQuantizedKVPlane(tensor, other);
  core.layout = KVLayout::tokenMajor;
  core.wrap = KVWrap::ring;
  core.pinned = 11;
  core.latentDim = 12;
  static_cast<void>(other);
  return core;
}
inline FlashDecode::Cache plainFlashDecodeCache(const Tensor& tensor) {
  return plainKVCacheView(tensor);
}
inline FlashDecode::Cache changedFlashDecodeCache(const Tensor& tensor, const Tensor& other) {
  return changedQuantizedKVCacheView(tensor, other);
}
inline FlashDecode plainFlashDecode(const Tensor& tensor) {
  FlashDecode core;
  core.queries = plainHeadsView(tensor);
  core.cache = plainFlashDecodeCache(tensor);
  return core;
}
inline FlashDecode changedFlashDecode(const Tensor& tensor, const Tensor& other) {
  FlashDecode core = plainFlashDecode(tensor);
  core.queries = changedHeadsView(tensor, other);
  core.cache = changedFlashDecodeCache(tensor, other);
  core.sequences = {changedAttendedSequence(tensor, other)};
  core.results = changedAttentionResults(tensor, other);
  core.options = changedAttentionOptions(tensor, other);
  core.scratch = other;
  static_cast<void>(other);
  return core;
}
inline MergePartials plainMergePartials(const Tensor& tensor) {
  MergePartials core;
  core.parts = plainAttentionPartials(tensor);
  return core;
}
inline MergePartials changedMergePartials(const Tensor& tensor, const Tensor& other) {
  MergePartials core = plainMergePartials(tensor);
  core.parts = changedAttentionPartials(tensor, other);
  core.sinks = other;
  core.results = changedAttentionResults(tensor, other);
  static_cast<void>(other);
  return core;
}
inline HostOptions plainHostOptions(const Tensor&) {
  HostOptions core;
  return core;
}
inline HostOptions changedHostOptions(const Tensor& tensor, const Tensor& other) {
  HostOptions core = plainHostOptions(tensor);
  core.workers = 7;
  core.orderSeed = 8;
  core.checking = HostOptions::Checking::full;
  core.allowsSameValue = true;
  core.perturbsResults = true;
  core.level = HostOptions::Level::avx512;
  core.compiler = "other";
  static_cast<void>(other);
  return core;
}
inline KVCacheWrite::Rows plainKVCacheWriteRows(const Tensor&) {
  KVCacheWrite::Rows core;
  return core;
}
inline KVCacheWrite::Rows changedKVCacheWriteRows(const Tensor& tensor, const Tensor& other) {
  KVCacheWrite::Rows core = plainKVCacheWriteRows(tensor);
  core.sequences = changedRowIndices(tensor, other);
  core.positions = changedRowIndices(tensor, other);
  static_cast<void>(other);
  return core;
}
inline KVCacheQuantize plainKVCacheQuantize(const Tensor& tensor) {
  KVCacheQuantize core;
  core.keys = plainHeadsView(tensor);
  core.into = plainQuantizedKVCacheView(tensor);
  return core;
}
inline KVCacheQuantize changedKVCacheQuantize(const Tensor& tensor, const Tensor& other) {
  KVCacheQuantize core = plainKVCacheQuantize(tensor);
  core.keys = changedHeadsView(tensor, other);
  core.values = changedHeadsView(tensor, other);
  core.sourceLayout = KVLayout::headMajor;
  core.sourceOffset = 10;
  core.tokens = 11;
  core.sourceIsRing = true;
  core.into = changedQuantizedKVCacheView(tensor, other);
  core.sequence = 14;
  core.position = 15;
  core.rows = changedKVCacheWriteRows(tensor, other);
  core.options = changedKVQuantizeOptions(tensor, other);
  core.counts = other;
  core.probe = other;
  static_cast<void>(other);
  return core;
}
inline KVCacheDequantize plainKVCacheDequantize(const Tensor& tensor) {
  KVCacheDequantize core;
  core.from = plainQuantizedKVCacheView(tensor);
  return core;
}
inline KVCacheDequantize changedKVCacheDequantize(const Tensor& tensor, const Tensor& other) {
  KVCacheDequantize core = plainKVCacheDequantize(tensor);
  core.from = changedQuantizedKVCacheView(tensor, other);
  core.sequence = 8;
  core.position = 9;
  core.keys = other;
  core.values = other;
  core.layout = KVLayout::headMajor;
  core.domain = KVDomain::rotated;
  static_cast<void>(other);
  return core;
}
inline Hadamard plainHadamard(const Tensor& tensor) {
  Hadamard core;
  core.from = tensor;
  return core;
}
inline Hadamard changedHadamard(const Tensor& tensor, const Tensor& other) {
  Hadamard core = plainHadamard(tensor);
  core.from = other;
  core.into = other;
  core.signs = KVCodec::Name::mlx1Affine4;
  core.isInverse = true;
  static_cast<void>(other);
  return core;
}
inline KVCacheWrite plainKVCacheWrite(const Tensor& tensor) {
  KVCacheWrite core;
  core.keys = plainHeadsView(tensor);
  core.into = plainKVCacheView(tensor);
  return core;
}
inline KVCacheWrite changedKVCacheWrite(const Tensor& tensor, const Tensor& other) {
  KVCacheWrite core = plainKVCacheWrite(tensor);
  core.keys = changedHeadsView(tensor, other);
  core.values = changedHeadsView(tensor, other);
  core.sourceLayout = KVLayout::headMajor;
  core.sourceOffset = 10;
  core.tokens = 11;
  core.sourceIsRing = true;
  core.into = changedKVCacheView(tensor, other);
  core.sequence = 14;
  core.position = 15;
  core.rows = changedKVCacheWriteRows(tensor, other);
  static_cast<void>(other);
  return core;
}
inline RotaryEmbedding::YaRN plainRotaryEmbeddingYaRN(const Tensor&) {
  RotaryEmbedding::YaRN core;
  return core;
}
inline RotaryEmbedding::YaRN changedRotaryEmbeddingYaRN(const Tensor& tensor, const Tensor& other) {
  RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
  core.originalContext = 7;
  core.extensionFactor = 8.5;
  core.attentionFactor = 9.5;
  core.betaFast = 10.5;
  core.betaSlow = 11.5;
  core.roundsCorners = false;
  static_cast<void>(other);
  return core;
}
inline RotaryEmbedding plainRotaryEmbedding(const Tensor&) {
  RotaryEmbedding core;
  return core;
}
inline RotaryEmbedding changedRotaryEmbedding(const Tensor& tensor, const Tensor& other) {
  RotaryEmbedding core = plainRotaryEmbedding(tensor);
  core.layout = RotaryEmbedding::Layout::imrope;
  std::iota(core.sections.begin(), core.sections.end(), 1);
  core.base = 9.5;
  core.ropeDim = 10;
  core.pairing = RotaryEmbedding::Pairing::neighbors;
  core.otherAxis = RotaryEmbedding::OtherAxis::axis3;
  core.scale = 13.5;
  core.frequencyFactors = {0.5f, 3};
  core.yarn = changedRotaryEmbeddingYaRN(tensor, other);
  core.isInverse = true;
  static_cast<void>(other);
  return core;
}
inline RotaryStep plainRotaryStep(const Tensor&) {
  RotaryStep core;
  return core;
}
inline RotaryStep changedRotaryStep(const Tensor& tensor, const Tensor& other) {
  RotaryStep core = plainRotaryStep(tensor);
  core.embedding = changedRotaryEmbedding(tensor, other);
  core.positions = changedRotaryPositions(tensor, other);
  core.offsets = changedRotaryOffsets(tensor, other);
  static_cast<void>(other);
  return core;
}
inline MultiRoPE plainMultiRoPE(const Tensor& tensor) {
  MultiRoPE core;
  core.queries = plainHeadsView(tensor);
  return core;
}
inline MultiRoPE changedMultiRoPE(const Tensor& tensor, const Tensor& other) {
  MultiRoPE core = plainMultiRoPE(tensor);
  core.queries = changedHeadsView(tensor, other);
  core.keys = changedHeadsView(tensor, other);
  core.rotatedQueries = changedHeadsView(tensor, other);
  core.rotatedKeys = changedHeadsView(tensor, other);
  core.positions = changedRotaryPositions(tensor, other);
  core.offsets = changedRotaryOffsets(tensor, other);
  core.rotary = changedRotaryEmbedding(tensor, other);
  static_cast<void>(other);
  return core;
}

// Calls body(name, core) with each field of each struct changed.
template <typename Body>
void forEachField(const Tensor& tensor, const Tensor& other, Body&& body) {
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.scale = 7.5;
    body("AttentionOptions.scale", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.isCausal = false;
    body("AttentionOptions.isCausal", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.window = 9;
    body("AttentionOptions.window", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.windowSeesPinned = true;
    body("AttentionOptions.windowSeesPinned", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.softcap = 11.5;
    body("AttentionOptions.softcap", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.mask = other;
    body("AttentionOptions.mask", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.slopes = other;
    body("AttentionOptions.slopes", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.sinks = other;
    body("AttentionOptions.sinks", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.splits = 15;
    body("AttentionOptions.splits", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.kernel = AttentionOptions::Kernel::matrix;
    body("AttentionOptions.kernel", core);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    core.merge = AttentionOptions::Merge::inKernel;
    body("AttentionOptions.merge", core);
  }
  {
    AttentionPartials core = plainAttentionPartials(tensor);
    core.sums = other;
    body("AttentionPartials.sums", core);
  }
  {
    AttentionPartials core = plainAttentionPartials(tensor);
    core.stats = other;
    body("AttentionPartials.stats", core);
  }
  {
    AttentionResults core = plainAttentionResults(tensor);
    core.output = other;
    body("AttentionResults.output", core);
  }
  {
    AttentionResults core = plainAttentionResults(tensor);
    core.partials = changedAttentionPartials(tensor, other);
    body("AttentionResults.partials", core);
  }
  {
    AttentionResults core = plainAttentionResults(tensor);
    core.logSumExp = other;
    body("AttentionResults.logSumExp", core);
  }
  {
    AttendedSequence core = plainAttendedSequence(tensor);
    core.sequence = 7;
    body("AttendedSequence.sequence", core);
  }
  {
    AttendedSequence core = plainAttendedSequence(tensor);
    core.length = 8;
    body("AttendedSequence.length", core);
  }
  {
    AttendedSequence core = plainAttendedSequence(tensor);
    core.highest = 9;
    body("AttendedSequence.highest", core);
  }
  {
    AttendedSequence core = plainAttendedSequence(tensor);
    core.rows = 10;
    body("AttendedSequence.rows", core);
  }
  {
    AttendedSequence core = plainAttendedSequence(tensor);
    core.position = 11;
    body("AttendedSequence.position", core);
  }
  {
    SlidingWindow core = plainSlidingWindow(tensor);
    core.window = 7;
    body("SlidingWindow.window", core);
  }
  {
    SlidingWindow core = plainSlidingWindow(tensor);
    core.maxRows = 8;
    body("SlidingWindow.maxRows", core);
  }
  {
    SlidingWindow core = plainSlidingWindow(tensor);
    core.maxDraft = 9;
    body("SlidingWindow.maxDraft", core);
  }
  {
    KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    core.candidates = 7;
    body("KVQuantizeOptions.candidates", core);
  }
  {
    KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    core.keyScale = KVScaleRule::leastSquares;
    body("KVQuantizeOptions.keyScale", core);
  }
  {
    KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    core.valueScale = KVScaleRule::unbiased;
    body("KVQuantizeOptions.valueScale", core);
  }
  {
    KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    core.nonFinite = KVNonFinite::zero;
    body("KVQuantizeOptions.nonFinite", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.codec = KVCodec::Name::mlx1Affine4;
    body("KVQuantizedStorage.codec", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.keyBits = 8;
    body("KVQuantizedStorage.keyBits", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.valueBits = 9;
    body("KVQuantizedStorage.valueBits", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.scaleFactor = 10.5;
    body("KVQuantizedStorage.scaleFactor", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.options = changedKVQuantizeOptions(tensor, other);
    body("KVQuantizedStorage.options", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.keyMeans = other;
    body("KVQuantizedStorage.keyMeans", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.valueMeans = other;
    body("KVQuantizedStorage.valueMeans", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.keyChannelScales = other;
    body("KVQuantizedStorage.keyChannelScales", core);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    core.planes = KVQuantizedPlanes::values;
    body("KVQuantizedStorage.planes", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.kvHeads = 7;
    body("AttentionCacheDescriptor.kvHeads", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.headDim = 8;
    body("AttentionCacheDescriptor.headDim", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.valueHeadDim = 9;
    body("AttentionCacheDescriptor.valueHeadDim", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.capacity = 10;
    body("AttentionCacheDescriptor.capacity", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.sequences = 11;
    body("AttentionCacheDescriptor.sequences", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.dtype = DType::i32;
    body("AttentionCacheDescriptor.dtype", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.whenFull = KVWrap::ring;
    body("AttentionCacheDescriptor.whenFull", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.pinned = 14;
    body("AttentionCacheDescriptor.pinned", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.quantized = changedKVQuantizedStorage(tensor, other);
    body("AttentionCacheDescriptor.quantized", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.slidingWindow = changedSlidingWindow(tensor, other);
    body("AttentionCacheDescriptor.slidingWindow", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.latentDim = 17;
    body("AttentionCacheDescriptor.latentDim", core);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.isStorageOnly = true;
    body("AttentionCacheDescriptor.isStorageOnly", core);
  }
  {
    HeadsView::Strides core = plainHeadsViewStrides(tensor);
    core.sequences = 7;
    body("HeadsView.Strides.sequences", core);
  }
  {
    HeadsView::Strides core = plainHeadsViewStrides(tensor);
    core.tokens = 8;
    body("HeadsView.Strides.tokens", core);
  }
  {
    HeadsView::Strides core = plainHeadsViewStrides(tensor);
    core.heads = 9;
    body("HeadsView.Strides.heads", core);
  }
  {
    HeadsView::Strides core = plainHeadsViewStrides(tensor);
    core.headDim = 10;
    body("HeadsView.Strides.headDim", core);
  }
  {
    HeadsView::Strides core = plainHeadsViewStrides(tensor);
    core.offset = 11;
    body("HeadsView.Strides.offset", core);
  }
  {
    HeadsView::Strides core = plainHeadsViewStrides(tensor);
    core.sequenceStride = 12;
    body("HeadsView.Strides.sequenceStride", core);
  }
  {
    HeadsView::Strides core = plainHeadsViewStrides(tensor);
    core.tokenStride = 13;
    body("HeadsView.Strides.tokenStride", core);
  }
  {
    HeadsView::Strides core = plainHeadsViewStrides(tensor);
    core.headStride = 14;
    body("HeadsView.Strides.headStride", core);
  }
  {
    HeadsView core = plainHeadsView(tensor);
    core.tensor = other;
    body("HeadsView.tensor", core);
  }
  {
    HeadsView core = plainHeadsView(tensor);
    core.layout = KVLayout::headMajor;
    body("HeadsView.layout", core);
  }
  {
    HeadsView core = plainHeadsView(tensor);
    core.strides = changedHeadsViewStrides(tensor, other);
    body("HeadsView.strides", core);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    core.keys = other;
    body("KVCacheView.keys", core);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    core.values = other;
    body("KVCacheView.values", core);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    core.layout = KVLayout::tokenMajor;
    body("KVCacheView.layout", core);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    core.wrap = KVWrap::ring;
    body("KVCacheView.wrap", core);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    core.pinned = 11;
    body("KVCacheView.pinned", core);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    core.latentDim = 12;
    body("KVCacheView.latentDim", core);
  }
  {
    KVCodec core = plainKVCodec(tensor);
    core.name = KVCodec::Name::mlx1Affine4;
    body("KVCodec.name", core);
  }
  {
    KVCodec core = plainKVCodec(tensor);
    core.bits = 8;
    body("KVCodec.bits", core);
  }
  {
    KVCodec core = plainKVCodec(tensor);
    core.scaleFactor = 9.5;
    body("KVCodec.scaleFactor", core);
  }
  {
    QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    core.codec = changedKVCodec(tensor, other);
    body("QuantizedKVPlane.codec", core);
  }
  {
    QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    core.codes = other;
    body("QuantizedKVPlane.codes", core);
  }
  {
    QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    core.scales = other;
    body("QuantizedKVPlane.scales", core);
  }
  {
    QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    core.means = other;
    body("QuantizedKVPlane.means", core);
  }
  {
    QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    core.channelScales = other;
    body("QuantizedKVPlane.channelScales", core);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    core.keys = changedQuantizedKVPlane(tensor, other);
    body("QuantizedKVCacheView.keys", core);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    core.values = changedQuantizedKVPlane(tensor, other);
    body("QuantizedKVCacheView.values", core);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    core.layout = KVLayout::tokenMajor;
    body("QuantizedKVCacheView.layout", core);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    core.wrap = KVWrap::ring;
    body("QuantizedKVCacheView.wrap", core);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    core.pinned = 11;
    body("QuantizedKVCacheView.pinned", core);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    core.latentDim = 12;
    body("QuantizedKVCacheView.latentDim", core);
  }
  {
    const FlashDecode::Cache core = changedKVCacheView(tensor, other);
    body("FlashDecode.Cache.dense", core);
  }
  {
    const FlashDecode::Cache core = changedQuantizedKVCacheView(tensor, other);
    body("FlashDecode.Cache.quantized", core);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.queries = changedHeadsView(tensor, other);
    body("FlashDecode.queries", core);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.cache = changedFlashDecodeCache(tensor, other);
    body("FlashDecode.cache", core);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.sequences = {changedAttendedSequence(tensor, other)};
    body("FlashDecode.sequences", core);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.results = changedAttentionResults(tensor, other);
    body("FlashDecode.results", core);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.options = changedAttentionOptions(tensor, other);
    body("FlashDecode.options", core);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.scratch = other;
    body("FlashDecode.scratch", core);
  }
  {
    MergePartials core = plainMergePartials(tensor);
    core.parts = changedAttentionPartials(tensor, other);
    body("MergePartials.parts", core);
  }
  {
    MergePartials core = plainMergePartials(tensor);
    core.sinks = other;
    body("MergePartials.sinks", core);
  }
  {
    MergePartials core = plainMergePartials(tensor);
    core.results = changedAttentionResults(tensor, other);
    body("MergePartials.results", core);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    core.workers = 7;
    body("HostOptions.workers", core);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    core.orderSeed = 8;
    body("HostOptions.orderSeed", core);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    core.checking = HostOptions::Checking::full;
    body("HostOptions.checking", core);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    core.allowsSameValue = true;
    body("HostOptions.allowsSameValue", core);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    core.perturbsResults = true;
    body("HostOptions.perturbsResults", core);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    core.level = HostOptions::Level::avx512;
    body("HostOptions.level", core);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    core.compiler = "other";
    body("HostOptions.compiler", core);
  }
  {
    KVCacheWrite::Rows core = plainKVCacheWriteRows(tensor);
    core.sequences = changedRowIndices(tensor, other);
    body("KVCacheWrite.Rows.sequences", core);
  }
  {
    KVCacheWrite::Rows core = plainKVCacheWriteRows(tensor);
    core.positions = changedRowIndices(tensor, other);
    body("KVCacheWrite.Rows.positions", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.keys = changedHeadsView(tensor, other);
    body("KVCacheQuantize.keys", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.values = changedHeadsView(tensor, other);
    body("KVCacheQuantize.values", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.sourceLayout = KVLayout::headMajor;
    body("KVCacheQuantize.sourceLayout", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.sourceOffset = 10;
    body("KVCacheQuantize.sourceOffset", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.tokens = 11;
    body("KVCacheQuantize.tokens", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.sourceIsRing = true;
    body("KVCacheQuantize.sourceIsRing", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.into = changedQuantizedKVCacheView(tensor, other);
    body("KVCacheQuantize.into", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.sequence = 14;
    body("KVCacheQuantize.sequence", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.position = 15;
    body("KVCacheQuantize.position", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.rows = changedKVCacheWriteRows(tensor, other);
    body("KVCacheQuantize.rows", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.options = changedKVQuantizeOptions(tensor, other);
    body("KVCacheQuantize.options", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.counts = other;
    body("KVCacheQuantize.counts", core);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.probe = other;
    body("KVCacheQuantize.probe", core);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    core.from = changedQuantizedKVCacheView(tensor, other);
    body("KVCacheDequantize.from", core);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    core.sequence = 8;
    body("KVCacheDequantize.sequence", core);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    core.position = 9;
    body("KVCacheDequantize.position", core);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    core.keys = other;
    body("KVCacheDequantize.keys", core);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    core.values = other;
    body("KVCacheDequantize.values", core);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    core.layout = KVLayout::headMajor;
    body("KVCacheDequantize.layout", core);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    core.domain = KVDomain::rotated;
    body("KVCacheDequantize.domain", core);
  }
  {
    Hadamard core = plainHadamard(tensor);
    core.from = other;
    body("Hadamard.from", core);
  }
  {
    Hadamard core = plainHadamard(tensor);
    core.into = other;
    body("Hadamard.into", core);
  }
  {
    Hadamard core = plainHadamard(tensor);
    core.signs = KVCodec::Name::mlx1Affine4;
    body("Hadamard.signs", core);
  }
  {
    Hadamard core = plainHadamard(tensor);
    core.isInverse = true;
    body("Hadamard.isInverse", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.keys = changedHeadsView(tensor, other);
    body("KVCacheWrite.keys", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.values = changedHeadsView(tensor, other);
    body("KVCacheWrite.values", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.sourceLayout = KVLayout::headMajor;
    body("KVCacheWrite.sourceLayout", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.sourceOffset = 10;
    body("KVCacheWrite.sourceOffset", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.tokens = 11;
    body("KVCacheWrite.tokens", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.sourceIsRing = true;
    body("KVCacheWrite.sourceIsRing", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.into = changedKVCacheView(tensor, other);
    body("KVCacheWrite.into", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.sequence = 14;
    body("KVCacheWrite.sequence", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.position = 15;
    body("KVCacheWrite.position", core);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.rows = changedKVCacheWriteRows(tensor, other);
    body("KVCacheWrite.rows", core);
  }
  {
    RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
    core.originalContext = 7;
    body("RotaryEmbedding.YaRN.originalContext", core);
  }
  {
    RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
    core.extensionFactor = 8.5;
    body("RotaryEmbedding.YaRN.extensionFactor", core);
  }
  {
    RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
    core.attentionFactor = 9.5;
    body("RotaryEmbedding.YaRN.attentionFactor", core);
  }
  {
    RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
    core.betaFast = 10.5;
    body("RotaryEmbedding.YaRN.betaFast", core);
  }
  {
    RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
    core.betaSlow = 11.5;
    body("RotaryEmbedding.YaRN.betaSlow", core);
  }
  {
    RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
    core.roundsCorners = false;
    body("RotaryEmbedding.YaRN.roundsCorners", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.layout = RotaryEmbedding::Layout::imrope;
    body("RotaryEmbedding.layout", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    std::iota(core.sections.begin(), core.sections.end(), 1);
    body("RotaryEmbedding.sections", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.base = 9.5;
    body("RotaryEmbedding.base", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.ropeDim = 10;
    body("RotaryEmbedding.ropeDim", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.pairing = RotaryEmbedding::Pairing::neighbors;
    body("RotaryEmbedding.pairing", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.otherAxis = RotaryEmbedding::OtherAxis::axis3;
    body("RotaryEmbedding.otherAxis", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.scale = 13.5;
    body("RotaryEmbedding.scale", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.frequencyFactors = {0.5f, 3};
    body("RotaryEmbedding.frequencyFactors", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.yarn = changedRotaryEmbeddingYaRN(tensor, other);
    body("RotaryEmbedding.yarn", core);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.isInverse = true;
    body("RotaryEmbedding.isInverse", core);
  }
  {
    RotaryStep core = plainRotaryStep(tensor);
    core.embedding = changedRotaryEmbedding(tensor, other);
    body("RotaryStep.embedding", core);
  }
  {
    RotaryStep core = plainRotaryStep(tensor);
    core.positions = changedRotaryPositions(tensor, other);
    body("RotaryStep.positions", core);
  }
  {
    RotaryStep core = plainRotaryStep(tensor);
    core.offsets = changedRotaryOffsets(tensor, other);
    body("RotaryStep.offsets", core);
  }
  {
    MultiRoPE core = plainMultiRoPE(tensor);
    core.queries = changedHeadsView(tensor, other);
    body("MultiRoPE.queries", core);
  }
  {
    MultiRoPE core = plainMultiRoPE(tensor);
    core.keys = changedHeadsView(tensor, other);
    body("MultiRoPE.keys", core);
  }
  {
    MultiRoPE core = plainMultiRoPE(tensor);
    core.rotatedQueries = changedHeadsView(tensor, other);
    body("MultiRoPE.rotatedQueries", core);
  }
  {
    MultiRoPE core = plainMultiRoPE(tensor);
    core.rotatedKeys = changedHeadsView(tensor, other);
    body("MultiRoPE.rotatedKeys", core);
  }
  {
    MultiRoPE core = plainMultiRoPE(tensor);
    core.positions = changedRotaryPositions(tensor, other);
    body("MultiRoPE.positions", core);
  }
  {
    MultiRoPE core = plainMultiRoPE(tensor);
    core.offsets = changedRotaryOffsets(tensor, other);
    body("MultiRoPE.offsets", core);
  }
  {
    MultiRoPE core = plainMultiRoPE(tensor);
    core.rotary = changedRotaryEmbedding(tensor, other);
    body("MultiRoPE.rotary", core);
  }
}

// Calls body(name, core, c) for each field that may be zero in C: where zero is its default, or
// stands for it. `handleOf` gives the handle of a tensor.
template <typename Handles, typename Body>
void forEachZero(const Tensor& tensor, Handles&& handleOf, Body&& body) {
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.scale = {};
    body("AttentionOptions.scale", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.is_bidirectional = {};
    body("AttentionOptions.isCausal", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.window = {};
    body("AttentionOptions.window", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.window_sees_pinned = {};
    body("AttentionOptions.windowSeesPinned", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.softcap = {};
    body("AttentionOptions.softcap", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.mask = {};
    body("AttentionOptions.mask", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.slopes = {};
    body("AttentionOptions.slopes", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.sinks = {};
    body("AttentionOptions.sinks", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.splits = {};
    body("AttentionOptions.splits", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.kernel = {};
    body("AttentionOptions.kernel", core, c);
  }
  {
    const AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.merge = {};
    body("AttentionOptions.merge", core, c);
  }
  {
    const AttentionResults core = plainAttentionResults(tensor);
    mnk_attention_results c = c::write(core, handleOf);
    c.output = {};
    body("AttentionResults.output", core, c);
  }
  {
    const AttentionResults core = plainAttentionResults(tensor);
    mnk_attention_results c = c::write(core, handleOf);
    c.partials = {};
    body("AttentionResults.partials", core, c);
  }
  {
    const AttentionResults core = plainAttentionResults(tensor);
    mnk_attention_results c = c::write(core, handleOf);
    c.log_sum_exp = {};
    body("AttentionResults.logSumExp", core, c);
  }
  {
    const AttendedSequence core = plainAttendedSequence(tensor);
    mnk_attended_sequence c = c::write(core, handleOf);
    c.length = {};
    body("AttendedSequence.length", core, c);
  }
  {
    const AttendedSequence core = plainAttendedSequence(tensor);
    mnk_attended_sequence c = c::write(core, handleOf);
    c.highest = {};
    body("AttendedSequence.highest", core, c);
  }
  {
    const AttendedSequence core = plainAttendedSequence(tensor);
    mnk_attended_sequence c = c::write(core, handleOf);
    c.rows = {};
    body("AttendedSequence.rows", core, c);
  }
  {
    const AttendedSequence core = plainAttendedSequence(tensor);
    mnk_attended_sequence c = c::write(core, handleOf);
    c.position = {};
    body("AttendedSequence.position", core, c);
  }
  {
    const SlidingWindow core = plainSlidingWindow(tensor);
    mnk_sliding_window c = c::write(core, handleOf);
    c.window = {};
    body("SlidingWindow.window", core, c);
  }
  {
    const SlidingWindow core = plainSlidingWindow(tensor);
    mnk_sliding_window c = c::write(core, handleOf);
    c.max_draft = {};
    body("SlidingWindow.maxDraft", core, c);
  }
  {
    const KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    mnk_kv_quantize_options c = c::write(core, handleOf);
    c.candidates = {};
    body("KVQuantizeOptions.candidates", core, c);
  }
  {
    const KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    mnk_kv_quantize_options c = c::write(core, handleOf);
    c.key_scale = {};
    body("KVQuantizeOptions.keyScale", core, c);
  }
  {
    const KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    mnk_kv_quantize_options c = c::write(core, handleOf);
    c.value_scale = {};
    body("KVQuantizeOptions.valueScale", core, c);
  }
  {
    const KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    mnk_kv_quantize_options c = c::write(core, handleOf);
    c.non_finite = {};
    body("KVQuantizeOptions.nonFinite", core, c);
  }
  {
    const KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.codec = {};
    body("KVQuantizedStorage.codec", core, c);
  }
  {
    const KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.scale_factor = {};
    body("KVQuantizedStorage.scaleFactor", core, c);
  }
  {
    const KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.options = {};
    body("KVQuantizedStorage.options", core, c);
  }
  {
    const KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.key_means = {};
    body("KVQuantizedStorage.keyMeans", core, c);
  }
  {
    const KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.value_means = {};
    body("KVQuantizedStorage.valueMeans", core, c);
  }
  {
    const KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.key_channel_scales = {};
    body("KVQuantizedStorage.keyChannelScales", core, c);
  }
  {
    const KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.planes = {};
    body("KVQuantizedStorage.planes", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.kv_heads = {};
    body("AttentionCacheDescriptor.kvHeads", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.head_dim = {};
    body("AttentionCacheDescriptor.headDim", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.value_head_dim = {};
    body("AttentionCacheDescriptor.valueHeadDim", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.capacity = {};
    body("AttentionCacheDescriptor.capacity", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.when_full = {};
    body("AttentionCacheDescriptor.whenFull", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.pinned = {};
    body("AttentionCacheDescriptor.pinned", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.quantized = {};
    body("AttentionCacheDescriptor.quantized", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.sliding_window = {};
    body("AttentionCacheDescriptor.slidingWindow", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.latent_dim = {};
    body("AttentionCacheDescriptor.latentDim", core, c);
  }
  {
    const AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.is_storage_only = {};
    body("AttentionCacheDescriptor.isStorageOnly", core, c);
  }
  {
    const HeadsView::Strides core = plainHeadsViewStrides(tensor);
    mnk_heads_view_strides c = c::write(core, handleOf);
    c.sequences = {};
    body("HeadsView.Strides.sequences", core, c);
  }
  {
    const HeadsView::Strides core = plainHeadsViewStrides(tensor);
    mnk_heads_view_strides c = c::write(core, handleOf);
    c.head_dim = {};
    body("HeadsView.Strides.headDim", core, c);
  }
  {
    const HeadsView::Strides core = plainHeadsViewStrides(tensor);
    mnk_heads_view_strides c = c::write(core, handleOf);
    c.offset = {};
    body("HeadsView.Strides.offset", core, c);
  }
  {
    const HeadsView::Strides core = plainHeadsViewStrides(tensor);
    mnk_heads_view_strides c = c::write(core, handleOf);
    c.sequence_stride = {};
    body("HeadsView.Strides.sequenceStride", core, c);
  }
  {
    const HeadsView::Strides core = plainHeadsViewStrides(tensor);
    mnk_heads_view_strides c = c::write(core, handleOf);
    c.token_stride = {};
    body("HeadsView.Strides.tokenStride", core, c);
  }
  {
    const HeadsView::Strides core = plainHeadsViewStrides(tensor);
    mnk_heads_view_strides c = c::write(core, handleOf);
    c.head_stride = {};
    body("HeadsView.Strides.headStride", core, c);
  }
  {
    const HeadsView core = plainHeadsView(tensor);
    mnk_heads_view c = c::write(core, handleOf);
    c.layout = {};
    body("HeadsView.layout", core, c);
  }
  {
    const HeadsView core = plainHeadsView(tensor);
    mnk_heads_view c = c::write(core, handleOf);
    c.strides = {};
    body("HeadsView.strides", core, c);
  }
  {
    const KVCacheView core = plainKVCacheView(tensor);
    mnk_kv_cache_view c = c::write(core, handleOf);
    c.values = {};
    body("KVCacheView.values", core, c);
  }
  {
    const KVCacheView core = plainKVCacheView(tensor);
    mnk_kv_cache_view c = c::write(core, handleOf);
    c.layout = {};
    body("KVCacheView.layout", core, c);
  }
  {
    const KVCacheView core = plainKVCacheView(tensor);
    mnk_kv_cache_view c = c::write(core, handleOf);
    c.wrap = {};
    body("KVCacheView.wrap", core, c);
  }
  {
    const KVCacheView core = plainKVCacheView(tensor);
    mnk_kv_cache_view c = c::write(core, handleOf);
    c.pinned = {};
    body("KVCacheView.pinned", core, c);
  }
  {
    const KVCacheView core = plainKVCacheView(tensor);
    mnk_kv_cache_view c = c::write(core, handleOf);
    c.latent_dim = {};
    body("KVCacheView.latentDim", core, c);
  }
  {
    const KVCodec core = plainKVCodec(tensor);
    mnk_kv_codec c = c::write(core, handleOf);
    c.name = {};
    body("KVCodec.name", core, c);
  }
  {
    const KVCodec core = plainKVCodec(tensor);
    mnk_kv_codec c = c::write(core, handleOf);
    c.scale_factor = {};
    body("KVCodec.scaleFactor", core, c);
  }
  {
    const QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    mnk_quantized_kv_plane c = c::write(core, handleOf);
    c.scales = {};
    body("QuantizedKVPlane.scales", core, c);
  }
  {
    const QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    mnk_quantized_kv_plane c = c::write(core, handleOf);
    c.means = {};
    body("QuantizedKVPlane.means", core, c);
  }
  {
    const QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    mnk_quantized_kv_plane c = c::write(core, handleOf);
    c.channel_scales = {};
    body("QuantizedKVPlane.channelScales", core, c);
  }
  {
    const QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    mnk_quantized_kv_cache_view c = c::write(core, handleOf);
    c.values = {};
    body("QuantizedKVCacheView.values", core, c);
  }
  {
    const QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    mnk_quantized_kv_cache_view c = c::write(core, handleOf);
    c.layout = {};
    body("QuantizedKVCacheView.layout", core, c);
  }
  {
    const QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    mnk_quantized_kv_cache_view c = c::write(core, handleOf);
    c.wrap = {};
    body("QuantizedKVCacheView.wrap", core, c);
  }
  {
    const QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    mnk_quantized_kv_cache_view c = c::write(core, handleOf);
    c.pinned = {};
    body("QuantizedKVCacheView.pinned", core, c);
  }
  {
    const QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    mnk_quantized_kv_cache_view c = c::write(core, handleOf);
    c.latent_dim = {};
    body("QuantizedKVCacheView.latentDim", core, c);
  }
  {
    const FlashDecode core = plainFlashDecode(tensor);
    mnk_flash_decode c = c::write(core, handleOf);
    c.results = {};
    body("FlashDecode.results", core, c);
  }
  {
    const FlashDecode core = plainFlashDecode(tensor);
    mnk_flash_decode c = c::write(core, handleOf);
    c.options = {};
    body("FlashDecode.options", core, c);
  }
  {
    const FlashDecode core = plainFlashDecode(tensor);
    mnk_flash_decode c = c::write(core, handleOf);
    c.scratch = {};
    body("FlashDecode.scratch", core, c);
  }
  {
    const MergePartials core = plainMergePartials(tensor);
    mnk_merge_partials c = c::write(core, handleOf);
    c.sinks = {};
    body("MergePartials.sinks", core, c);
  }
  {
    const MergePartials core = plainMergePartials(tensor);
    mnk_merge_partials c = c::write(core, handleOf);
    c.results = {};
    body("MergePartials.results", core, c);
  }
  {
    const HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.workers = {};
    body("HostOptions.workers", core, c);
  }
  {
    const HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.order_seed = {};
    body("HostOptions.orderSeed", core, c);
  }
  {
    const HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.checking = {};
    body("HostOptions.checking", core, c);
  }
  {
    const HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.allows_same_value = {};
    body("HostOptions.allowsSameValue", core, c);
  }
  {
    const HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.perturbs_results = {};
    body("HostOptions.perturbsResults", core, c);
  }
  {
    const HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.level = {};
    body("HostOptions.level", core, c);
  }
  {
    const HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.compiler = {};
    body("HostOptions.compiler", core, c);
  }
  {
    const KVCacheWrite::Rows core = plainKVCacheWriteRows(tensor);
    mnk_kv_cache_write_rows c = c::write(core, handleOf);
    c.sequences = {};
    body("KVCacheWrite.Rows.sequences", core, c);
  }
  {
    const KVCacheWrite::Rows core = plainKVCacheWriteRows(tensor);
    mnk_kv_cache_write_rows c = c::write(core, handleOf);
    c.positions = {};
    body("KVCacheWrite.Rows.positions", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.values = {};
    body("KVCacheQuantize.values", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.source_layout = {};
    body("KVCacheQuantize.sourceLayout", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.source_offset = {};
    body("KVCacheQuantize.sourceOffset", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.tokens = {};
    body("KVCacheQuantize.tokens", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.source_is_ring = {};
    body("KVCacheQuantize.sourceIsRing", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.position = {};
    body("KVCacheQuantize.position", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.rows = {};
    body("KVCacheQuantize.rows", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.options = {};
    body("KVCacheQuantize.options", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.counts = {};
    body("KVCacheQuantize.counts", core, c);
  }
  {
    const KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.probe = {};
    body("KVCacheQuantize.probe", core, c);
  }
  {
    const KVCacheDequantize core = plainKVCacheDequantize(tensor);
    mnk_kv_cache_dequantize c = c::write(core, handleOf);
    c.position = {};
    body("KVCacheDequantize.position", core, c);
  }
  {
    const KVCacheDequantize core = plainKVCacheDequantize(tensor);
    mnk_kv_cache_dequantize c = c::write(core, handleOf);
    c.keys = {};
    body("KVCacheDequantize.keys", core, c);
  }
  {
    const KVCacheDequantize core = plainKVCacheDequantize(tensor);
    mnk_kv_cache_dequantize c = c::write(core, handleOf);
    c.values = {};
    body("KVCacheDequantize.values", core, c);
  }
  {
    const KVCacheDequantize core = plainKVCacheDequantize(tensor);
    mnk_kv_cache_dequantize c = c::write(core, handleOf);
    c.layout = {};
    body("KVCacheDequantize.layout", core, c);
  }
  {
    const KVCacheDequantize core = plainKVCacheDequantize(tensor);
    mnk_kv_cache_dequantize c = c::write(core, handleOf);
    c.domain = {};
    body("KVCacheDequantize.domain", core, c);
  }
  {
    const Hadamard core = plainHadamard(tensor);
    mnk_hadamard c = c::write(core, handleOf);
    c.into = {};
    body("Hadamard.into", core, c);
  }
  {
    const Hadamard core = plainHadamard(tensor);
    mnk_hadamard c = c::write(core, handleOf);
    c.signs = {};
    body("Hadamard.signs", core, c);
  }
  {
    const Hadamard core = plainHadamard(tensor);
    mnk_hadamard c = c::write(core, handleOf);
    c.is_inverse = {};
    body("Hadamard.isInverse", core, c);
  }
  {
    const KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.values = {};
    body("KVCacheWrite.values", core, c);
  }
  {
    const KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.source_layout = {};
    body("KVCacheWrite.sourceLayout", core, c);
  }
  {
    const KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.source_offset = {};
    body("KVCacheWrite.sourceOffset", core, c);
  }
  {
    const KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.tokens = {};
    body("KVCacheWrite.tokens", core, c);
  }
  {
    const KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.source_is_ring = {};
    body("KVCacheWrite.sourceIsRing", core, c);
  }
  {
    const KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.position = {};
    body("KVCacheWrite.position", core, c);
  }
  {
    const KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.rows = {};
    body("KVCacheWrite.rows", core, c);
  }
  {
    const RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
    mnk_rotary_embedding_yarn c = c::write(core, handleOf);
    c.original_context = {};
    body("RotaryEmbedding.YaRN.originalContext", core, c);
  }
  {
    const RotaryEmbedding::YaRN core = plainRotaryEmbeddingYaRN(tensor);
    mnk_rotary_embedding_yarn c = c::write(core, handleOf);
    c.keeps_fractions = {};
    body("RotaryEmbedding.YaRN.roundsCorners", core, c);
  }
  {
    const RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    std::fill(std::begin(c.sections), std::end(c.sections), 0);
    body("RotaryEmbedding.sections", core, c);
  }
  {
    const RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.rope_dim = {};
    body("RotaryEmbedding.ropeDim", core, c);
  }
  {
    const RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.pairing = {};
    body("RotaryEmbedding.pairing", core, c);
  }
  {
    const RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.other_axis = {};
    body("RotaryEmbedding.otherAxis", core, c);
  }
  {
    const RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.frequency_factors = {};
    body("RotaryEmbedding.frequencyFactors", core, c);
  }
  {
    const RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.yarn = {};
    body("RotaryEmbedding.yarn", core, c);
  }
  {
    const RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.is_inverse = {};
    body("RotaryEmbedding.isInverse", core, c);
  }
  {
    const RotaryStep core = plainRotaryStep(tensor);
    mnk_rotary_step c = c::write(core, handleOf);
    c.positions = {};
    body("RotaryStep.positions", core, c);
  }
  {
    const RotaryStep core = plainRotaryStep(tensor);
    mnk_rotary_step c = c::write(core, handleOf);
    c.offsets = {};
    body("RotaryStep.offsets", core, c);
  }
  {
    const MultiRoPE core = plainMultiRoPE(tensor);
    mnk_multi_rope c = c::write(core, handleOf);
    c.keys = {};
    body("MultiRoPE.keys", core, c);
  }
  {
    const MultiRoPE core = plainMultiRoPE(tensor);
    mnk_multi_rope c = c::write(core, handleOf);
    c.rotated_queries = {};
    body("MultiRoPE.rotatedQueries", core, c);
  }
  {
    const MultiRoPE core = plainMultiRoPE(tensor);
    mnk_multi_rope c = c::write(core, handleOf);
    c.rotated_keys = {};
    body("MultiRoPE.rotatedKeys", core, c);
  }
  {
    const MultiRoPE core = plainMultiRoPE(tensor);
    mnk_multi_rope c = c::write(core, handleOf);
    c.positions = {};
    body("MultiRoPE.positions", core, c);
  }
  {
    const MultiRoPE core = plainMultiRoPE(tensor);
    mnk_multi_rope c = c::write(core, handleOf);
    c.offsets = {};
    body("MultiRoPE.offsets", core, c);
  }
}

// Calls body(name, error, core, c) for each field that can be wrong in C alone.
template <typename Handles, typename Body>
void forEachWrong(const Tensor& tensor, const Tensor& other, Handles&& handleOf, Body&& body) {
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.kernel = static_cast<mnk_attention_options_kernel>(99);
    body("AttentionOptions.kernel", "the number is not a case of mnk_attention_options_kernel", core, c);
  }
  {
    AttentionOptions core = plainAttentionOptions(tensor);
    mnk_attention_options c = c::write(core, handleOf);
    c.merge = static_cast<mnk_attention_options_merge>(99);
    body("AttentionOptions.merge", "the number is not a case of mnk_attention_options_merge", core, c);
  }
  {
    AttentionPartials core = plainAttentionPartials(tensor);
    mnk_attention_partials c = c::write(core, handleOf);
    c.sums = {};
    body("AttentionPartials.sums", "is missing", core, c);
  }
  {
    AttentionPartials core = plainAttentionPartials(tensor);
    mnk_attention_partials c = c::write(core, handleOf);
    c.stats = {};
    body("AttentionPartials.stats", "is missing", core, c);
  }
  {
    AttendedSequence core = plainAttendedSequence(tensor);
    core.position = 11;
    mnk_attended_sequence c = c::write(core, handleOf);
    c.has_position = false;
    body("AttendedSequence.position", "position would be ignored", core, c);
  }
  {
    KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    mnk_kv_quantize_options c = c::write(core, handleOf);
    c.key_scale = static_cast<mnk_kv_scale_rule>(99);
    body("KVQuantizeOptions.keyScale", "the number is not a case of mnk_kv_scale_rule", core, c);
  }
  {
    KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    mnk_kv_quantize_options c = c::write(core, handleOf);
    c.value_scale = static_cast<mnk_kv_scale_rule>(99);
    body("KVQuantizeOptions.valueScale", "the number is not a case of mnk_kv_scale_rule", core, c);
  }
  {
    KVQuantizeOptions core = plainKVQuantizeOptions(tensor);
    mnk_kv_quantize_options c = c::write(core, handleOf);
    c.non_finite = static_cast<mnk_kv_non_finite>(99);
    body("KVQuantizeOptions.nonFinite", "the number is not a case of mnk_kv_non_finite", core, c);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.codec = static_cast<mnk_kv_codec_name>(99);
    body("KVQuantizedStorage.codec", "the number is not a case of mnk_kv_codec_name", core, c);
  }
  {
    KVQuantizedStorage core = plainKVQuantizedStorage(tensor);
    mnk_kv_quantized_storage c = c::write(core, handleOf);
    c.planes = static_cast<mnk_kv_quantized_planes>(99);
    body("KVQuantizedStorage.planes", "the number is not a case of mnk_kv_quantized_planes", core, c);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.dtype = static_cast<mnk_dtype>(99);
    body("AttentionCacheDescriptor.dtype", "the number is not a case of mnk_dtype", core, c);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.when_full = static_cast<mnk_kv_wrap>(99);
    body("AttentionCacheDescriptor.whenFull", "the number is not a case of mnk_kv_wrap", core, c);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.quantized = changedKVQuantizedStorage(tensor, other);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.has_quantized = false;
    body("AttentionCacheDescriptor.quantized", "quantized would be ignored", core, c);
  }
  {
    AttentionCacheDescriptor core = plainAttentionCacheDescriptor(tensor);
    core.slidingWindow = changedSlidingWindow(tensor, other);
    mnk_attention_cache_descriptor c = c::write(core, handleOf);
    c.has_sliding_window = false;
    body("AttentionCacheDescriptor.slidingWindow", "sliding_window would be ignored", core, c);
  }
  {
    HeadsView core = plainHeadsView(tensor);
    mnk_heads_view c = c::write(core, handleOf);
    c.tensor = {};
    body("HeadsView.tensor", "is missing", core, c);
  }
  {
    HeadsView core = plainHeadsView(tensor);
    mnk_heads_view c = c::write(core, handleOf);
    c.layout = static_cast<mnk_kv_layout>(99);
    body("HeadsView.layout", "the number is not a case of mnk_kv_layout", core, c);
  }
  {
    HeadsView core = plainHeadsView(tensor);
    core.strides = changedHeadsViewStrides(tensor, other);
    mnk_heads_view c = c::write(core, handleOf);
    c.has_strides = false;
    body("HeadsView.strides", "strides would be ignored", core, c);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    mnk_kv_cache_view c = c::write(core, handleOf);
    c.keys = {};
    body("KVCacheView.keys", "is missing", core, c);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    mnk_kv_cache_view c = c::write(core, handleOf);
    c.layout = static_cast<mnk_kv_layout>(99);
    body("KVCacheView.layout", "the number is not a case of mnk_kv_layout", core, c);
  }
  {
    KVCacheView core = plainKVCacheView(tensor);
    mnk_kv_cache_view c = c::write(core, handleOf);
    c.wrap = static_cast<mnk_kv_wrap>(99);
    body("KVCacheView.wrap", "the number is not a case of mnk_kv_wrap", core, c);
  }
  {
    KVCodec core = plainKVCodec(tensor);
    mnk_kv_codec c = c::write(core, handleOf);
    c.name = static_cast<mnk_kv_codec_name>(99);
    body("KVCodec.name", "the number is not a case of mnk_kv_codec_name", core, c);
  }
  {
    QuantizedKVPlane core = plainQuantizedKVPlane(tensor);
    mnk_quantized_kv_plane c = c::write(core, handleOf);
    c.codes = {};
    body("QuantizedKVPlane.codes", "is missing", core, c);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    mnk_quantized_kv_cache_view c = c::write(core, handleOf);
    c.keys = {};
    body("QuantizedKVCacheView.keys", "is missing", core, c);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    mnk_quantized_kv_cache_view c = c::write(core, handleOf);
    c.layout = static_cast<mnk_kv_layout>(99);
    body("QuantizedKVCacheView.layout", "the number is not a case of mnk_kv_layout", core, c);
  }
  {
    QuantizedKVCacheView core = plainQuantizedKVCacheView(tensor);
    mnk_quantized_kv_cache_view c = c::write(core, handleOf);
    c.wrap = static_cast<mnk_kv_wrap>(99);
    body("QuantizedKVCacheView.wrap", "the number is not a case of mnk_kv_wrap", core, c);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    mnk_flash_decode c = c::write(core, handleOf);
    c.queries = {};
    body("FlashDecode.queries", "is missing", core, c);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    mnk_flash_decode c = c::write(core, handleOf);
    c.cache = {};
    body("FlashDecode.cache", "is missing", core, c);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.sequences = {changedAttendedSequence(tensor, other)};
    mnk_flash_decode c = c::write(core, handleOf);
    c.sequences = nullptr;
    body("FlashDecode.sequences", "sequences is missing", core, c);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.sequences = {changedAttendedSequence(tensor, other)};
    mnk_flash_decode c = c::write(core, handleOf);
    c.sequence_count = 0;
    body("FlashDecode.sequences", "sequences would be ignored", core, c);
  }
  {
    FlashDecode core = plainFlashDecode(tensor);
    core.sequences = {changedAttendedSequence(tensor, other)};
    mnk_flash_decode c = c::write(core, handleOf);
    c.sequence_count = SIZE_MAX;
    body("FlashDecode.sequences", "there are too many", core, c);
  }
  {
    MergePartials core = plainMergePartials(tensor);
    mnk_merge_partials c = c::write(core, handleOf);
    c.parts = {};
    body("MergePartials.parts", "is missing", core, c);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.checking = static_cast<mnk_host_options_checking>(99);
    body("HostOptions.checking", "the number is not a case of mnk_host_options_checking", core, c);
  }
  {
    HostOptions core = plainHostOptions(tensor);
    mnk_host_options c = c::write(core, handleOf);
    c.level = static_cast<mnk_host_options_level>(99);
    body("HostOptions.level", "the number is not a case of mnk_host_options_level", core, c);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.keys = {};
    body("KVCacheQuantize.keys", "is missing", core, c);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.source_layout = static_cast<mnk_kv_layout>(99);
    body("KVCacheQuantize.sourceLayout", "the number is not a case of mnk_kv_layout", core, c);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.tokens = 11;
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.has_tokens = false;
    body("KVCacheQuantize.tokens", "tokens would be ignored", core, c);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.into = {};
    body("KVCacheQuantize.into", "is missing", core, c);
  }
  {
    KVCacheQuantize core = plainKVCacheQuantize(tensor);
    core.rows = changedKVCacheWriteRows(tensor, other);
    mnk_kv_cache_quantize c = c::write(core, handleOf);
    c.has_rows = false;
    body("KVCacheQuantize.rows", "rows would be ignored", core, c);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    mnk_kv_cache_dequantize c = c::write(core, handleOf);
    c.from = {};
    body("KVCacheDequantize.from", "is missing", core, c);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    mnk_kv_cache_dequantize c = c::write(core, handleOf);
    c.layout = static_cast<mnk_kv_layout>(99);
    body("KVCacheDequantize.layout", "the number is not a case of mnk_kv_layout", core, c);
  }
  {
    KVCacheDequantize core = plainKVCacheDequantize(tensor);
    mnk_kv_cache_dequantize c = c::write(core, handleOf);
    c.domain = static_cast<mnk_kv_domain>(99);
    body("KVCacheDequantize.domain", "the number is not a case of mnk_kv_domain", core, c);
  }
  {
    Hadamard core = plainHadamard(tensor);
    mnk_hadamard c = c::write(core, handleOf);
    c.from = {};
    body("Hadamard.from", "is missing", core, c);
  }
  {
    Hadamard core = plainHadamard(tensor);
    core.signs = KVCodec::Name::mlx1Affine4;
    mnk_hadamard c = c::write(core, handleOf);
    c.signs = static_cast<mnk_kv_codec_name>(99);
    body("Hadamard.signs", "the number is not a case of mnk_kv_codec_name", core, c);
  }
  {
    Hadamard core = plainHadamard(tensor);
    core.signs = KVCodec::Name::mlx1Affine4;
    mnk_hadamard c = c::write(core, handleOf);
    c.has_signs = false;
    body("Hadamard.signs", "signs would be ignored", core, c);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.keys = {};
    body("KVCacheWrite.keys", "is missing", core, c);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.source_layout = static_cast<mnk_kv_layout>(99);
    body("KVCacheWrite.sourceLayout", "the number is not a case of mnk_kv_layout", core, c);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.tokens = 11;
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.has_tokens = false;
    body("KVCacheWrite.tokens", "tokens would be ignored", core, c);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.into = {};
    body("KVCacheWrite.into", "is missing", core, c);
  }
  {
    KVCacheWrite core = plainKVCacheWrite(tensor);
    core.rows = changedKVCacheWriteRows(tensor, other);
    mnk_kv_cache_write c = c::write(core, handleOf);
    c.has_rows = false;
    body("KVCacheWrite.rows", "rows would be ignored", core, c);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.layout = static_cast<mnk_rotary_embedding_layout>(99);
    body("RotaryEmbedding.layout", "the number is not a case of mnk_rotary_embedding_layout", core, c);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.pairing = static_cast<mnk_rotary_embedding_pairing>(99);
    body("RotaryEmbedding.pairing", "the number is not a case of mnk_rotary_embedding_pairing", core, c);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.other_axis = static_cast<mnk_rotary_embedding_other_axis>(99);
    body("RotaryEmbedding.otherAxis", "the number is not a case of mnk_rotary_embedding_other_axis", core, c);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.frequencyFactors = {0.5f, 3};
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.frequency_factors = nullptr;
    body("RotaryEmbedding.frequencyFactors", "frequency_factors is missing", core, c);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.frequencyFactors = {0.5f, 3};
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.frequency_factor_count = 0;
    body("RotaryEmbedding.frequencyFactors", "frequency_factors would be ignored", core, c);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.frequencyFactors = {0.5f, 3};
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.frequency_factor_count = SIZE_MAX;
    body("RotaryEmbedding.frequencyFactors", "there are too many", core, c);
  }
  {
    RotaryEmbedding core = plainRotaryEmbedding(tensor);
    core.yarn = changedRotaryEmbeddingYaRN(tensor, other);
    mnk_rotary_embedding c = c::write(core, handleOf);
    c.has_yarn = false;
    body("RotaryEmbedding.yarn", "yarn would be ignored", core, c);
  }
  {
    MultiRoPE core = plainMultiRoPE(tensor);
    mnk_multi_rope c = c::write(core, handleOf);
    c.queries = {};
    body("MultiRoPE.queries", "is missing", core, c);
  }
}

}  // namespace mnk::test
