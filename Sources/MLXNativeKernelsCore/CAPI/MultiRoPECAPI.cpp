#include "CAPI/HeadsViews.hpp"

#include "Support/Try.hpp"

namespace mnk::c {

Result<RotaryEmbedding> rotary(const mnk_rotary_embedding& given) {
  if (given.size != sizeof given) return wrongSize("mnk_rotary_embedding", given.size, sizeof given);
  MNK_TRY(auto layout, rotaryLayout(given.layout));
  MNK_TRY(auto pairing, rotaryPairing(given.pairing));
  MNK_TRY(auto otherAxis, rotaryOtherAxis(given.other_axis));
  if (!given.frequency_factors && given.frequency_factor_count != 0) return nullArgument("frequency_factors");
  constexpr size_t kMaxFactors = MultiRoPE::kMaxRopeDim / 2;
  if (given.frequency_factor_count > kMaxFactors) {
    return tooMany(MultiRoPE::name, "frequency factors", given.frequency_factor_count, kMaxFactors,
                   "Pass one for each pair that turns.");
  }

  RotaryEmbedding made{.layout = layout,
                       .base = given.base,
                       .pairing = pairing,
                       .otherAxis = otherAxis,
                       .scale = given.scale,
                       .isInverse = given.is_inverse};
  std::copy(std::begin(given.sections), std::end(given.sections), made.sections.begin());
  if (given.has_rope_dim) made.ropeDim = given.rope_dim;
  if (given.frequency_factors) {
    made.frequencyFactors.assign(given.frequency_factors, given.frequency_factors + given.frequency_factor_count);
  }
  if (given.has_yarn) {
    made.yarn = YaRN{.originalContext = given.yarn.original_context,
                     .extensionFactor = given.yarn.extension_factor,
                     .attentionFactor = given.yarn.attention_factor,
                     .betaFast = given.yarn.beta_fast,
                     .betaSlow = given.yarn.beta_slow,
                     .roundsCorners = !given.yarn.keeps_fractions};
  }
  return made;
}

Result<std::optional<RotaryOffsets>> rotaryOffsets(const mnk_rotary_numbers& given, std::string_view what) {
  if (given.tensor) return std::optional<RotaryOffsets>(given.tensor->tensor);
  if (!given.list && given.list_count != 0) return nullArgument(what);
  if (given.list_count > MultiRoPE::kMaxListed)
    return tooMany(MultiRoPE::name, what, given.list_count, MultiRoPE::kMaxListed);
  if (!given.list) return std::optional<RotaryOffsets>();
  return std::optional<RotaryOffsets>(std::vector<int32_t>(given.list, given.list + given.list_count));
}

Result<std::optional<RotaryPositions>> rotaryPositions(const mnk_rotary_numbers& given) {
  MNK_TRY(auto numbers, rotaryOffsets(given, "positions"));
  if (!numbers) return std::optional<RotaryPositions>();
  const auto* list = std::get_if<std::vector<int32_t>>(&*numbers);
  return std::optional(list ? RotaryPositions(*list, std::max(1u, given.list_axes))
                            : RotaryPositions(std::get<Tensor>(*numbers)));
}

}  // namespace mnk::c

using namespace mnk;

namespace {

Result<MultiRoPE> ropeFrom(const mnk_multi_rope* given) {
  MNK_TRY(auto rope, c::descriptor("mnk_multi_rope", given));
  if (!rope.queries.tensor) return c::nullArgument("queries.tensor");
  MultiRoPE op;
  const std::pair<const mnk_heads_view*, std::optional<HeadsView>*> optional[] = {
      {&rope.keys, &op.keys}, {&rope.rotated_queries, &op.rotatedQueries}, {&rope.rotated_keys, &op.rotatedKeys}};
  MNK_TRY(auto queries, c::viewFrom(rope.queries));
  op.queries = *queries;
  for (const auto& [from, into] : optional) {
    MNK_TRY(auto view, c::viewFrom(*from));
    *into = view;
  }
  MNK_TRY(auto positions, c::rotaryPositions(rope.positions));
  op.positions = positions.value_or(RotaryPositions(rope.first_position));
  MNK_TRY(auto offsets, c::rotaryOffsets(rope.offsets));
  op.offsets = offsets;
  MNK_TRY(auto rotary, c::rotary(rope.rotary));
  op.rotary = rotary;
  return op;
}

}  // namespace

mnk_plan* mnk_multi_rope_make_plan(const mnk_multi_rope* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(ropeFrom(op)); });
}

bool mnk_encoder_multi_rope(mnk_encoder* encoder, const mnk_multi_rope* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, ropeFrom(op)); });
}
