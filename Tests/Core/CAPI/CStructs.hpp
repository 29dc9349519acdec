// The ops of the C++ core as structs of the C API, field by field.
#pragma once
#include <algorithm>
#include <deque>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "CAPI/Handles.hpp"
#include "Ops/Common/BindingCases.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

// C structs for what the core has, with the memory that they point to.
class CStructs {
 public:
  // Numbers that are the default are left zero if `leavesDefaults`.
  explicit CStructs(bool leavesDefaults) : leavesDefaults_(leavesDefaults) {}

  mnk_kv_cache_write of(const KVCacheWrite& op) {
    auto made = storeOf<mnk_kv_cache_write>(op);
    made.into = of(op.into);
    return made;
  }

  mnk_kv_cache_quantize of(const KVCacheQuantize& op) {
    auto made = storeOf<mnk_kv_cache_quantize>(op);
    made.into = of(op.into);
    made.options = {.candidates = orZero(op.options.candidates, 5u),
                    .key_scale = ruleOf(op.options.keyScale, KVScaleRule::unbiased),
                    .value_scale = ruleOf(op.options.valueScale, KVScaleRule::leastSquares),
                    .non_finite = static_cast<mnk_kv_non_finite>(op.options.nonFinite)};
    made.counts = of(op.counts);
    made.probe = of(op.probe);
    return made;
  }

  mnk_kv_cache_dequantize of(const KVCacheDequantize& op) {
    return {.from = of(op.from),
            .sequence = op.sequence,
            .position = op.position,
            .keys = of(op.keys),
            .values = of(op.values),
            .layout = layoutOf(op.layout, KVLayout::tokenMajor),
            .domain = static_cast<mnk_kv_domain>(op.domain)};
  }

  mnk_hadamard of(const Hadamard& op) {
    return {.from = of(op.from),
            .into = of(op.into),
            .has_signs = op.signs.has_value(),
            .signs = static_cast<mnk_kv_codec_name>(op.signs.value_or(KVCodecName::turbo)),
            .is_inverse = op.isInverse};
  }

  mnk_multi_rope of(const MultiRoPE& op) {
    mnk_multi_rope made{.queries = of(op.queries),
                        .keys = of(op.keys),
                        .rotated_queries = of(op.rotatedQueries),
                        .rotated_keys = of(op.rotatedKeys),
                        .rotary = of(op.rotary)};
    const auto& positions = op.positions.source;
    if (const auto* first = std::get_if<int64_t>(&positions)) made.first_position = *first;
    if (const auto* tensor = std::get_if<Tensor>(&positions)) made.positions.tensor = of(*tensor);
    if (const auto* list = std::get_if<RotaryPositions::List>(&positions)) {
      made.positions = {
          .list = list->numbers.data(), .list_count = list->numbers.size(), .list_axes = orZero(list->axes, 1u)};
    }
    if (op.offsets) made.offsets = numbersOf<mnk_rotary_numbers>(*op.offsets);
    return made;
  }

  mnk_flash_decode of(const FlashDecode& op) {
    mnk_flash_decode made{.sequence_count = op.sequences.size(),
                          .results = keep(of(op.results)),
                          .options = keep(of(op.options)),
                          .scratch = of(op.scratch)};
    if (isPlain(op.queries))
      made.queries = of(op.queries.tensor);
    else
      made.queries_view = keep(of(op.queries));
    if (const auto* dense = std::get_if<KVCacheView>(&op.over))
      made.dense = keep(of(*dense));
    else
      made.quantized = keep(of(std::get<QuantizedKVCacheView>(op.over)));
    std::vector<mnk_attended_sequence> sequences;
    for (const AttendedSequence& one : op.sequences)
      sequences.push_back(
          {one.sequence, one.length, one.highest, one.rows, one.position.has_value(), one.position.value_or(0)});
    made.sequences = sequences_.emplace_back(std::move(sequences)).data();
    return made;
  }

  mnk_merge_partials of(const MergePartials& op) {
    return {.partial_sums = of(op.partials.sums),
            .partial_stats = of(op.partials.stats),
            .sinks = of(op.sinks),
            .results = keep(of(op.results))};
  }

 private:
  template <typename T>
  T orZero(T number, T byDefault) const {
    return leavesDefaults_ && number == byDefault ? T{} : number;
  }
  mnk_kv_layout layoutOf(KVLayout layout, KVLayout byDefault) const {
    return static_cast<mnk_kv_layout>(orZero(static_cast<uint32_t>(layout) + 1, static_cast<uint32_t>(byDefault) + 1));
  }
  mnk_kv_scale_rule ruleOf(KVScaleRule rule, KVScaleRule byDefault) const {
    return static_cast<mnk_kv_scale_rule>(
        orZero(static_cast<uint32_t>(rule) + 1, static_cast<uint32_t>(byDefault) + 1));
  }

  template <typename Struct>
  const Struct* keep(Struct made) {
    return &std::get<std::deque<Struct>>(kept_).emplace_back(made);
  }
  mnk_tensor* of(const Tensor& tensor) { return tensor ? &tensors_.emplace_back(mnk_tensor{tensor}) : nullptr; }
  mnk_tensor* of(const std::optional<Tensor>& tensor) { return tensor ? of(*tensor) : nullptr; }

  static bool isPlain(const HeadsView& view) { return !view.strides && view.layout == KVLayout::tokenMajor; }
  mnk_heads_view of(const HeadsView& view) {
    mnk_heads_view made{.tensor = of(view.tensor),
                        .layout = layoutOf(view.layout, KVLayout::tokenMajor),
                        .has_strides = view.strides.has_value()};
    if (!view.strides) return made;
    made.sequences = view.strides->sequences;
    made.tokens = view.strides->tokens;
    made.heads = view.strides->heads;
    made.head_dim = view.strides->headDim;
    made.offset = view.strides->offset;
    made.sequence_stride = view.strides->sequenceStride;
    made.token_stride = view.strides->tokenStride;
    made.head_stride = view.strides->headStride;
    return made;
  }
  mnk_heads_view of(const std::optional<HeadsView>& view) { return view ? of(*view) : mnk_heads_view{}; }

  mnk_kv_cache_view of(const KVCacheView& view) {
    return {.keys = of(view.keys),
            .values = of(view.values),
            .layout = layoutOf(view.layout, KVLayout::headMajor),
            .wrap = static_cast<mnk_kv_wrap>(view.wrap),
            .pinned = view.pinned,
            .latent_dim = view.latentDim};
  }
  mnk_quantized_kv_plane of(const QuantizedKVPlane& plane) {
    return {.codec = {.name = static_cast<mnk_kv_codec_name>(plane.codec.name),
                      .bits = plane.codec.bits,
                      .scale_factor = orZero(plane.codec.scaleFactor, 1.0f)},
            .codes = of(plane.codes),
            .scales = of(plane.scales),
            .means = of(plane.means),
            .channel_scales = of(plane.channelScales)};
  }
  mnk_quantized_kv_view of(const QuantizedKVCacheView& view) {
    return {.keys = of(view.keys),
            .values = view.values ? of(*view.values) : mnk_quantized_kv_plane{},
            .layout = layoutOf(view.layout, KVLayout::headMajor),
            .wrap = static_cast<mnk_kv_wrap>(view.wrap),
            .pinned = view.pinned,
            .latent_dim = view.latentDim};
  }

  mnk_attention_options of(const AttentionOptions& options) {
    mnk_attention_options converted{.mask = of(options.mask), .slopes = of(options.slopes), .sinks = of(options.sinks)};
    for (const NumberOption& option : numberOptions()) option.setInC(converted, option.get(options));
    return converted;
  }
  mnk_attention_results of(const AttentionResults& results) {
    return {.into = of(results.into),
            .partial_sums = results.partials ? of(results.partials->sums) : nullptr,
            .partial_stats = results.partials ? of(results.partials->stats) : nullptr,
            .log_sum_exp = of(results.logSumExp)};
  }

  static mnk_rotary_embedding of(const RotaryEmbedding& rotary) {
    mnk_rotary_embedding made{.layout = static_cast<mnk_rotary_layout>(rotary.layout),
                              .base = rotary.base,
                              .has_rope_dim = rotary.ropeDim.has_value(),
                              .rope_dim = rotary.ropeDim.value_or(0),
                              .pairing = static_cast<mnk_rotary_pairing>(rotary.pairing),
                              .other_axis = static_cast<mnk_rotary_other_axis>(rotary.otherAxis),
                              .scale = rotary.scale,
                              .frequency_factors = rotary.frequencyFactors.data(),
                              .frequency_factor_count = rotary.frequencyFactors.size(),
                              .has_yarn = rotary.yarn.has_value(),
                              .is_inverse = rotary.isInverse};
    std::copy(rotary.sections.begin(), rotary.sections.end(), made.sections);
    if (!rotary.yarn) return made;
    made.yarn = {.original_context = rotary.yarn->originalContext,
                 .extension_factor = rotary.yarn->extensionFactor,
                 .attention_factor = rotary.yarn->attentionFactor,
                 .beta_fast = rotary.yarn->betaFast,
                 .beta_slow = rotary.yarn->betaSlow,
                 .keeps_fractions = !rotary.yarn->roundsCorners};
    return made;
  }

  template <typename Numbers, typename List>
  Numbers numbersOf(const std::variant<List, Tensor>& numbers) {
    Numbers made{};
    if (const auto* tensor = std::get_if<Tensor>(&numbers)) {
      made.tensor = of(*tensor);
    } else {
      made.list = std::get<List>(numbers).data();
      made.list_count = std::get<List>(numbers).size();
    }
    return made;
  }

  // Where tokens come from and go to, which is the same for both ops that store them. Each source is a tensor where one
  // suffices, and a view otherwise.
  template <typename Struct, typename Op>
  Struct storeOf(const Op& op) {
    Struct made{};
    if (isPlain(op.keys))
      made.keys = of(op.keys.tensor);
    else
      made.keys_view = keep(of(op.keys));
    if (op.values && isPlain(*op.values))
      made.values = of(op.values->tensor);
    else if (op.values)
      made.values_view = keep(of(*op.values));
    made.source_layout = layoutOf(op.sourceLayout, KVLayout::tokenMajor);
    made.source_offset = op.sourceOffset;
    made.has_tokens = op.tokens.has_value();
    made.tokens = op.tokens.value_or(0);
    made.source_is_ring = op.sourceIsRing;
    made.sequence = op.sequence;
    made.position = op.position;
    made.has_rows = op.rows.has_value();
    if (!op.rows) return made;
    made.sequences = numbersOf<mnk_row_indices>(op.rows->sequences);
    made.positions = numbersOf<mnk_row_indices>(op.rows->positions);
    return made;
  }

  bool leavesDefaults_;
  std::deque<mnk_tensor> tensors_;
  std::tuple<std::deque<mnk_heads_view>, std::deque<mnk_kv_cache_view>, std::deque<mnk_quantized_kv_view>,
             std::deque<mnk_attention_options>, std::deque<mnk_attention_results>>
      kept_;
  std::deque<std::vector<mnk_attended_sequence>> sequences_;
};

// In the order of AnyOp.
inline constexpr std::tuple kCFunctions{
    std::make_pair(mnk_kv_cache_write_make_plan, mnk_encoder_kv_cache_write),
    std::make_pair(mnk_kv_cache_quantize_make_plan, mnk_encoder_kv_cache_quantize),
    std::make_pair(mnk_kv_cache_dequantize_make_plan, mnk_encoder_kv_cache_dequantize),
    std::make_pair(mnk_hadamard_make_plan, mnk_encoder_hadamard),
    std::make_pair(mnk_multi_rope_make_plan, mnk_encoder_multi_rope),
    std::make_pair(mnk_flash_decode_make_plan, mnk_encoder_flash_decode),
    std::make_pair(mnk_merge_partials_make_plan, mnk_encoder_merge_partials)};

template <typename Op, typename... Ops>
constexpr size_t indexIn(const std::variant<Ops...>*) {
  size_t index = 0;
  (void)((std::is_same_v<Op, Ops> || (++index, false)) || ...);
  return index;
}

// The functions of an op: one makes a plan of its struct, the other encodes it.
template <typename Op>
constexpr auto cFunctionsOf() {
  return std::get<indexIn<Op>(static_cast<const AnyOp*>(nullptr))>(kCFunctions);
}

// For no device where there is none.
template <typename Struct, typename MakePlan>
mnk_plan* makePlan(MakePlan make, const Struct* given, const mnk_device* device, mnk_error_out error) {
  if constexpr (std::is_invocable_v<MakePlan, const Struct*, const mnk_device*, mnk_error_out>) {
    return make(given, device, error);
  } else {
    return make(given, error);
  }
}

}  // namespace mnk::test
