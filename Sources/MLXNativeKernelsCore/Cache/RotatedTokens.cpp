#include "Cache/RotatedTokens.hpp"

#include <vector>

#include "Runtime/RotatedRows.hpp"
#include "Support/Format.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

Error misplaced(std::string_view call, std::string_view tokens, uint64_t rotatedFor, uint64_t position,
                uint32_t sequence) {
  return {
      .op = std::string(call),
      .what = fmt::format("{} were rotated for another position", tokens),
      .got = fmt::format("a rotation for position {}, and position {} of sequence {}", rotatedFor, position, sequence),
      .expected = fmt::format("{} that were rotated for position {}", tokens, position),
      .fix =
          "Rotate, append and attend with the same rows in the same order, and append before the next tokens are "
          "rotated."};
}

Error unrotated(std::string_view call, uint64_t position, uint32_t sequence) {
  return {.op = std::string(call),
          .what = "the step rotates tokens by the cache's next positions and appends others",
          .got = fmt::format("keys that were not rotated, at position {} of sequence {}", position, sequence),
          .expected = fmt::format("the keys that were rotated for position {}", position),
          .fix = "Append the tensor that the rotation wrote, all of its rows and no others."};
}

Error withoutOffsets(std::string_view call) {
  return {.op = std::string(call),
          .what = "rotary positions that follow a cache do not count prefixes",
          .got = "queries that were rotated by the next positions of the cache, without offsets",
          .expected = "positions that count the tokens of prefixes",
          .fix = "Rotate with offsets, the number of tokens in all prefixes; or pass `rotary` to appendAndAttend."};
}

}  // namespace

std::vector<PlacedRows> placedRows(std::span<const SequenceRows> entries, std::map<uint32_t, uint64_t> next) {
  std::vector<PlacedRows> placed;
  uint64_t first = 0;
  for (const auto& [sequence, rows] : entries) {
    placed.push_back({sequence, first, rows, next[sequence]});
    first += rows;
    next[sequence] += rows;
  }
  return placed;
}

Result<void> checkRotatedKeys(std::string_view call, const CommandEncoder& encoder, CacheCursors::Recording& recording,
                              const HeadsView& keys, std::span<const PlacedRows> placed) {
  const RotatedRows* const rotated = encoder.rotatedRows();
  if (!rotated) return {};
  for (const PlacedRows& each : placed) {
    const bool mustBeRotated = each.position < recording.rotatedEnd(each.sequence);
    const auto wrong = rotated->firstWrong(keys, each.first, each.rows, each.position, [&](const auto& row) {
      return row.rotatedFor ? *row.rotatedFor != row.place : mustBeRotated;
    });
    if (wrong && recording.isOvertaken(each.sequence)) return {};
    if (wrong && wrong->rotatedFor) return misplaced(call, "keys", *wrong->rotatedFor, wrong->place, each.sequence);
    if (wrong) return unrotated(call, wrong->place, each.sequence);
  }
  return {};
}

Result<void> checkRotatedQueries(std::string_view call, const CommandEncoder& encoder,
                                 CacheCursors::Recording& recording, const HeadsView& queries,
                                 std::span<const PlacedRows> placed, bool isAfterPrefixes) {
  const RotatedRows* const rotated = encoder.rotatedRows();
  if (!rotated) return {};
  for (const PlacedRows& each : placed) {
    const auto wrong = rotated->firstWrong(queries, each.first, each.rows, each.position, [&](const auto& row) {
      return row.rotatedFor && (*row.rotatedFor != row.place || (isAfterPrefixes && !row.hasOffsets));
    });
    if (wrong && recording.isOvertaken(each.sequence)) return {};
    if (wrong && *wrong->rotatedFor == wrong->place) return withoutOffsets(call);
    if (wrong) return misplaced(call, "queries", *wrong->rotatedFor, wrong->place, each.sequence);
  }
  return {};
}

Result<void> checkUnrotated(std::string_view call, const CommandEncoder& encoder, const CacheCursors& cache,
                            const HeadsView& tokens, std::span<const PlacedRows> placed) {
  const RotatedRows* const rotated = encoder.rotatedRows();
  if (!rotated) return {};
  for (const PlacedRows& each : placed) {
    const auto wrong = rotated->firstWrong(tokens, each.first, each.rows, each.position, [&](const auto& row) {
      return row.rotatedFor == row.place && row.cache == &cache;
    });
    if (!wrong) continue;
    return Error{.op = std::string(call),
                 .what = "tokens are rotated twice",
                 .got = fmt::format("tokens that the step has rotated for position {} before", wrong->place),
                 .expected = "tokens that are not rotated",
                 .fix = "Rotate queries and keys once, before the append or with it."};
  }
  return {};
}

Result<void> checkFollowed(std::string_view call, CacheCursors::Recording& recording, const RotaryPositions& positions,
                           std::span<const PlacedRows> placed) {
  const auto* number = std::get_if<int64_t>(&positions.source);
  const auto* list = std::get_if<RotaryPositions::List>(&positions.source);
  for (const PlacedRows& each : placed) {
    for (uint64_t row = 0; row < (number ? std::min<uint64_t>(each.rows, 1) : each.rows); ++row) {
      const auto rotatedFor =
          number ? static_cast<uint64_t>(*number) : static_cast<uint64_t>(list->numbers.at(each.first + row));
      if (rotatedFor != each.position + row && recording.isOvertaken(each.sequence)) return {};
      if (rotatedFor != each.position + row) {
        return misplaced(call, "tokens", rotatedFor, each.position + row, each.sequence);
      }
    }
  }
  return {};
}

}  // namespace mnk
