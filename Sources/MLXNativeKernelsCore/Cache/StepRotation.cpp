#include "Cache/StepRotation.hpp"

#include "Cache/AttentionCacheRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// A slice of valid positions.
RotaryPositions positionsFrom(const RotaryPositions& all, const StepPart& part) {
  const uint64_t tokens = part.entries.front().rows;
  // A number counts up in each entry.
  if (const auto* number = std::get_if<int64_t>(&all.source)) {
    return *number + static_cast<int64_t>(part.firstRow - part.entryRow);
  }
  const auto* list = std::get_if<RotaryPositions::List>(&all.source);
  if (!list) return all;
  const uint64_t perAxis = list->numbers.size() / list->axes;
  std::vector<int32_t> numbers;
  for (uint64_t axis = 0; axis < list->axes; ++axis) {
    const auto begin = list->numbers.begin() + static_cast<int64_t>(axis * perAxis + part.firstRow);
    numbers.insert(numbers.end(), begin, begin + static_cast<int64_t>(tokens));
  }
  return {std::move(numbers), list->axes};
}

Result<RotaryOffsets> offsetOf(const RotaryOffsets& offsets, size_t entry) {
  if (const auto* list = std::get_if<std::vector<int32_t>>(&offsets)) {
    return RotaryOffsets(std::vector<int32_t>{list->at(entry)});
  }
  const auto& all = std::get<Tensor>(offsets);
  MNK_TRY(auto shape, Shape::make({all.shape().elementCount()}));
  MNK_TRY(auto flat, all.reshaped(shape));
  MNK_TRY(auto one, flat.slice(entry, 1));
  return RotaryOffsets(std::move(one));
}

// Offsets belong to entries, but the kernel indexes them by sequence of a view, and all sequences of a view have the
// same number of tokens.
Error offsetsOfUnevenRows(uint64_t entries) {
  return {.op = std::string(kCacheName),
          .what = "offsets are given for sequences that differ in their rows",
          .got = fmt::format("offsets, and other row counts for some of {}", countText(entries, "sequence")),
          .expected = "the same number of rows for each sequence, or no offsets",
          .fix = "Add the offsets to positions, and pass these for each token."};
}

// A position for each token of several entries: counted up from `first` in each, or the token's position in the cache.
RotaryPositions listedPositions(std::span<const StepEntry> entries, const int64_t* first, uint64_t prefixTokens) {
  std::vector<int32_t> positions;
  positions.reserve(RowCounts::of(entries).total);
  for (const StepEntry& entry : entries) {
    int64_t position = first ? *first : static_cast<int64_t>(entry.before.next + prefixTokens);
    for (uint64_t row = 0; row < entry.rows; ++row) positions.push_back(static_cast<int32_t>(position++));
  }
  return RotaryPositions(std::move(positions));
}

}  // namespace

Result<void> setRotation(MultiRoPE& rotation, const ResolvedStep& step, const StepPart& part, uint64_t prefixTokens) {
  const RotaryStep& rotary = *step.rotary;
  const RowCounts rows = RowCounts::of(part.entries);
  if (rotary.offsets && !rows.areEqual()) return offsetsOfUnevenRows(rows.entries);
  const auto view = [&](const HeadsView& all) {
    return part.entries.size() == 1 || rows.rows == 0 ? part.viewOf(all) : runsOf(all, 0, rows.rows, rows.entries);
  };
  rotation.queries = view(step.step.queries);
  rotation.keys = view(step.step.keys);
  rotation.rotary = rotary.embedding;
  rotation.positions = rotationPositions(step, part, prefixTokens);
  rotation.offsets = rotary.offsets;
  if (!part.isWhole && rotary.offsets && step.entries.size() > 1) {
    MNK_TRY(rotation.offsets, offsetOf(*rotary.offsets, part.entry));
  }
  return {};
}

RotaryPositions rotationPositions(const ResolvedStep& step, const StepPart& part, uint64_t prefixTokens) {
  const auto& given = step.rotary->positions;
  if (given && !part.isWhole) return positionsFrom(*given, part);
  const RowCounts rows = RowCounts::of(part.entries);
  const auto* number = given ? std::get_if<int64_t>(&given->source) : nullptr;
  if (part.entries.size() == 1) return given ? *given : part.entries.front().before.next + prefixTokens;
  if (!canRotateAtOnce(step)) return given.value_or(RotaryPositions());
  if (given && (!number || rows.areEqual())) return *given;
  const auto total = static_cast<int64_t>(rows.total);
  if (given && (*number < INT32_MIN || *number > INT32_MAX - total)) return *given;  // the rules refuse it
  return listedPositions(part.entries, number, prefixTokens);
}

bool canRotateAtOnce(const ResolvedStep& step) {
  const RowCounts rows = RowCounts::of(step.entries);
  const auto& positions = step.rotary->positions;
  const bool isListed =
      rows.entries > 1 && (!positions || (std::holds_alternative<int64_t>(positions->source) && rows.rows == 0));
  return !isListed || rows.total <= MultiRoPE::kMaxListed;
}

void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary) {
  const auto* positions = rotary.positions ? std::get_if<Tensor>(&rotary.positions->source) : nullptr;
  const auto* offsets = rotary.offsets ? std::get_if<Tensor>(&*rotary.offsets) : nullptr;
  if (positions) sources.push_back({"positions", positions->range()});
  if (offsets) sources.push_back({"offsets", offsets->range()});
}

}  // namespace mnk
