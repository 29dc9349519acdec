// The ops of the C++ core as structs of the C API, field by field.
#pragma once
#include <algorithm>
#include <deque>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "CAPI/Generated/Write.hpp"
#include "Ops/Common/BindingCases.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

// C structs for what the core has, with the memory that they point to.
class CStructs {
 public:
  mnk_kv_cache_write of(const KVCacheWrite& op) {
    auto made = storeOf<mnk_kv_cache_write>(op);
    made.into = of(op.into);
    return made;
  }

  mnk_kv_cache_quantize of(const KVCacheQuantize& op) {
    auto made = storeOf<mnk_kv_cache_quantize>(op);
    made.into = of(op.into);
    made.options = of(op.options);
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
            .layout = c::write(op.layout),
            .domain = c::write(op.domain)};
  }

  mnk_hadamard of(const Hadamard& op) {
    return {.from = of(op.from),
            .into = of(op.into),
            .has_signs = op.signs.has_value(),
            .signs = c::write(op.signs.value_or(KVCodec::Name::turbo)),
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
      made.positions = {.list = list->numbers.data(),
                        .list_count = list->numbers.size(),
                        .list_axes = list->numbers.empty() ? 0 : list->axes};
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
    for (const AttendedSequence& one : op.sequences) sequences.push_back(of(one));
    made.sequences = sequences_.emplace_back(std::move(sequences)).data();
    return made;
  }

  mnk_merge_partials of(const MergePartials& op) {
    return {.partials = of(op.partials), .sinks = of(op.sinks), .results = keep(of(op.results))};
  }

 private:
  template <typename Struct>
  const Struct* keep(Struct made) {
    return &std::get<std::deque<Struct>>(kept_).emplace_back(made);
  }
  mnk_tensor* of(const Tensor& tensor) { return tensor ? &tensors_.emplace_back(mnk_tensor{tensor}) : nullptr; }
  mnk_tensor* of(const std::optional<Tensor>& tensor) { return tensor ? of(*tensor) : nullptr; }

  static bool isPlain(const HeadsView& view) { return !view.strides && view.layout == KVLayout::tokenMajor; }
  mnk_heads_view of(const std::optional<HeadsView>& view) { return view ? of(*view) : mnk_heads_view{}; }

  // A struct that the API's description writes.
  template <typename Core>
  auto of(const Core& core) -> decltype(c::write(core, nullptr)) {
    const auto handleOf = [this](const auto& tensor) { return this->of(tensor); };
    return c::write(core, handleOf);
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
    made.source_layout = c::write(op.sourceLayout);
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

  std::deque<mnk_tensor> tensors_;
  std::tuple<std::deque<mnk_heads_view>, std::deque<mnk_kv_cache_view>, std::deque<mnk_quantized_kv_cache_view>,
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
