#include "Cache/StepRotation.hpp"

#include <numeric>

#include "Support/Format.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

// A slice of valid positions.
RotaryPositions positionsFrom(const RotaryPositions& all, uint64_t first, uint64_t tokens) {
  if (const auto* number = std::get_if<int64_t>(&all.source)) return *number + static_cast<int64_t>(first);
  const auto* list = std::get_if<RotaryPositions::List>(&all.source);
  if (!list) return all;
  const uint64_t perAxis = list->numbers.size() / list->axes;
  std::vector<int32_t> numbers;
  for (uint64_t axis = 0; axis < list->axes; ++axis) {
    const auto begin = list->numbers.begin() + static_cast<int64_t>(axis * perAxis + first);
    numbers.insert(numbers.end(), begin, begin + static_cast<int64_t>(tokens));
  }
  return {std::move(numbers), list->axes};
}

// Offsets belong to entries, but the kernel indexes them by sequence of a view, and all sequences of a view have the
// same number of tokens.
Error offsetsOfUnevenRows(uint64_t entries) {
  return {.op = "AttentionCache",
          .what = "offsets are given for sequences that differ in their rows",
          .got = fmt::format("offsets, and other row counts for some of {}", countText(entries, "sequence")),
          .expected = "the same number of rows for each sequence, or no offsets",
          .fix = "Add the offsets to positions, and pass these for each token."};
}

}  // namespace

Result<MultiRoPE> rotationOf(const AppendAndAttend& step, std::span<const SequenceRows> entries,
                             const std::map<uint32_t, CacheCursor>& cursors) {
  const RotaryStep& rotary = *step.rotary;
  const CallRows call = CallRows::of(entries);
  const bool isUniform = call.rows != 0 || call.total == 0;
  if (!isUniform && rotary.offsets) return offsetsOfUnevenRows(call.entries);
  const auto view = [&](const HeadsView& all) {
    return call.rows == 0 ? all : runsOf(all, 0, call.rows, call.entries);
  };
  MultiRoPE rotation{
      .queries = view(step.queries), .keys = view(step.keys), .offsets = rotary.offsets, .rotary = rotary.embedding};
  if (rotary.positions) rotation.positions = *rotary.positions;
  const auto* number = std::get_if<int64_t>(&rotation.positions.source);
  if (entries.size() == 1 && !rotary.positions) rotation.positions = cursors.at(entries[0].sequence).next;
  if (entries.size() == 1 || !canRotateAtOnce(step, call) || (rotary.positions && (!number || isUniform))) {
    return rotation;
  }
  const auto total = static_cast<int64_t>(call.total);
  if (number && (*number < INT32_MIN || *number > INT32_MAX - total)) return rotation;  // the rules refuse the number
  // Lists a position for each token: counted up from the number in each entry, or the token's position in the cache.
  std::map<uint32_t, int64_t> next;
  for (const auto& [sequence, cursor] : cursors) next.emplace(sequence, static_cast<int64_t>(cursor.next));
  std::vector<int32_t> positions;
  for (const auto& [sequence, rows] : entries) {
    int64_t position = rotary.positions ? *number : next[sequence];
    for (uint64_t row = 0; row < rows; ++row) positions.push_back(static_cast<int32_t>(position++));
    next[sequence] = position;
  }
  rotation.positions = RotaryPositions(std::move(positions));
  return rotation;
}

bool canRotateAtOnce(const AppendAndAttend& step, const CallRows& call) {
  const bool isListed =
      !step.rotary->positions || (std::holds_alternative<int64_t>(step.rotary->positions->source) && call.rows == 0);
  return !isListed || call.total <= MultiRoPE::kMaxListed;
}

Result<void> takeEntry(RotaryStep& rotary, uint64_t entry, uint64_t first, uint64_t tokens) {
  if (rotary.positions && std::holds_alternative<RotaryPositions::List>(rotary.positions->source)) {
    rotary.positions = positionsFrom(*rotary.positions, first, tokens);
  }
  if (!rotary.offsets) return {};
  if (const auto* list = std::get_if<std::vector<int32_t>>(&*rotary.offsets)) {
    rotary.offsets = std::vector<int32_t>{list->at(entry)};
    return {};
  }
  const auto& all = std::get<Tensor>(*rotary.offsets);
  MNK_TRY(auto shape, Shape::make({all.shape().elementCount()}));
  MNK_TRY(auto flat, all.reshaped(shape));
  MNK_TRY(auto one, flat.slice(entry, 1));
  rotary.offsets = std::move(one);
  return {};
}

MultiRoPE rotationOf(const AppendAndAttend& step, uint64_t first, uint64_t tokens, uint64_t position) {
  const RotaryStep& rotary = *step.rotary;
  MultiRoPE rotation{.queries = step.queries,
                     .keys = step.keys,
                     .positions = RotaryPositions(position),
                     .offsets = rotary.offsets,
                     .rotary = rotary.embedding};
  if (rotary.positions) rotation.positions = *rotary.positions;
  if (tokens == step.keys.resolved().totalTokens()) return rotation;
  rotation.queries = runsOf(step.queries, first, tokens, 1);
  rotation.keys = runsOf(step.keys, first, tokens, 1);
  if (rotary.positions) rotation.positions = positionsFrom(*rotary.positions, first, tokens);
  return rotation;
}

void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary) {
  const auto* positions = rotary.positions ? std::get_if<Tensor>(&rotary.positions->source) : nullptr;
  const auto* offsets = rotary.offsets ? std::get_if<Tensor>(&*rotary.offsets) : nullptr;
  if (positions) sources.push_back({"positions", positions->range()});
  if (offsets) sources.push_back({"offsets", offsets->range()});
}

}  // namespace mnk
