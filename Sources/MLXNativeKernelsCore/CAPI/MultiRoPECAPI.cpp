#include <tuple>

#include "CAPI/Rotary.hpp"
#include "Support/Format.hpp"
#include "Support/Try.hpp"

namespace mnk::c {

namespace {

Error positionsGivenTwice(std::string_view got, std::string_view fix) {
  return {.op = std::string(MultiRoPE::name),
          .what = "positions are given twice",
          .got = std::string(got),
          .expected = "one of both",
          .fix = std::string(fix)};
}

}  // namespace

Result<std::optional<RotaryOffsets>> rotaryOffsets(const mnk_rotary_numbers& input, std::string_view what,
                                                   bool hasAxes) {
  if (!input.list && input.list_axes != 0) return ignored(MultiRoPE::name, "list_axes", "list", "NULL");
  if (!hasAxes && input.list_axes != 0) {
    return Error{.op = std::string(MultiRoPE::name),
                 .what = "offsets have no axes",
                 .got = fmt::format("list_axes of {}", input.list_axes),
                 .expected = "0",
                 .fix = "Pass an offset for each sequence, or one for all, and leave list_axes at 0."};
  }
  if (input.tensor) return std::optional<RotaryOffsets>(input.tensor->tensor);
  if (!input.list && input.list_count != 0) return nullArgument(what);
  if (input.list_count > MultiRoPE::kMaxListed)
    return tooMany(MultiRoPE::name, what, input.list_count, MultiRoPE::kMaxListed);
  if (!input.list) return std::optional<RotaryOffsets>();
  return std::optional<RotaryOffsets>(std::vector<int32_t>(input.list, input.list + input.list_count));
}

Result<std::optional<RotaryPositions>> rotaryPositions(const mnk_rotary_numbers& input, int64_t firstPosition) {
  MNK_TRY(auto numbers, rotaryOffsets(input, "positions", true));
  if (!numbers) return std::optional<RotaryPositions>();
  if (firstPosition != 0) {
    return positionsGivenTwice("a first position, and other positions",
                               "Leave `first_position` at 0, or `positions` out.");
  }
  const auto* list = std::get_if<std::vector<int32_t>>(&*numbers);
  return std::optional(list ? RotaryPositions(*list, std::max(1u, input.list_axes))
                            : RotaryPositions(std::get<Tensor>(*numbers)));
}

Result<std::optional<RotaryPositions>> nextPositions(const mnk_next_positions& input, bool hasOthers) {
  const bool hasLists = input.sequences || input.row_counts || input.sequence_count != 0;
  if (!input.cache && !hasLists) return std::optional<RotaryPositions>();
  if (!input.cache) return nullArgument("next.cache");
  if (hasOthers) {
    return positionsGivenTwice("the next positions of a cache, and other positions",
                               "Leave `first_position` and `positions` out, or `next`.");
  }
  if (!input.sequences && input.sequence_count != 0) return nullArgument("next.sequences");
  // A listed sequence without rows has a row count.
  const uint64_t most =
      input.row_counts ? input.cache->cache.descriptor().sequences + MultiRoPE::kMaxListed : MultiRoPE::kMaxListed;
  if (input.sequence_count > most) return tooMany(MultiRoPE::name, "sequences", input.sequence_count, most);
  const size_t count = input.sequences ? input.sequence_count : 1;
  std::vector<uint32_t> sequences = {kOnlySequence};
  std::optional<std::vector<uint32_t>> rowCounts;
  if (input.sequences) sequences.assign(input.sequences, input.sequences + count);
  if (input.row_counts) rowCounts.emplace(input.row_counts, input.row_counts + count);
  return std::optional(input.cache->cache.nextPositions(std::move(sequences), std::move(rowCounts)));
}

}  // namespace mnk::c

using namespace mnk;

namespace {

Result<MultiRoPE> ropeFrom(const mnk_multi_rope* input) {
  MNK_TRY(auto rope, c::descriptor("mnk_multi_rope", input));
  MultiRoPE op;
  const std::tuple<const mnk_heads_view*, std::optional<HeadsView>*, std::string_view> optional[] = {
      {&rope.keys, &op.keys, "keys"},
      {&rope.rotated_queries, &op.rotatedQueries, "rotated_queries"},
      {&rope.rotated_keys, &op.rotatedKeys, "rotated_keys"}};
  MNK_TRY(c::read(op.queries, rope.queries, {nullptr, "queries"}));
  for (const auto& [from, into, name] : optional) {
    if (c::isFilled(*from)) MNK_TRY(c::read(into->emplace(), *from, {nullptr, name}));
  }
  MNK_TRY(auto positions, c::rotaryPositions(rope.positions, rope.first_position));
  MNK_TRY(auto next, c::nextPositions(rope.next, positions || rope.first_position != 0));
  op.positions = next ? *std::move(next) : positions.value_or(RotaryPositions(rope.first_position));
  MNK_TRY(auto offsets, c::rotaryOffsets(rope.offsets));
  op.offsets = offsets;
  MNK_TRY(c::read(op.rotary, rope.rotary, {nullptr, "rotary"}));
  return op;
}

}  // namespace

mnk_plan* mnk_multi_rope_make_plan(const mnk_multi_rope* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(ropeFrom(op)); });
}

bool mnk_encoder_multi_rope(mnk_encoder* encoder, const mnk_multi_rope* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, ropeFrom(op)); });
}
