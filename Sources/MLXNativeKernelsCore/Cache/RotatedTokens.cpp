#include "Cache/AttentionCacheState.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/RepeatedOps.hpp"
#include "Runtime/RotatedRows.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

using Token = RotatedRows::Token;
using Vector = RotatedRows::Vector;

std::string tokenText(uint64_t position, uint32_t sequence) {
  return fmt::format("position {} of sequence {}", position, sequence);
}

Error misplaced(std::string_view call, std::string_view rows, const std::string& rotatedFor, const std::string& used) {
  return {.op = std::string(call),
          .what = fmt::format("{} were rotated for another token", rows),
          .got = fmt::format("a rotation for {}, and a use for {}", rotatedFor, used),
          .expected = fmt::format("{} that were rotated for {}", rows, used),
          .fix =
              "Rotate, append and attend in one step, with the same rows in the same order and layout, before the next "
              "tokens are rotated. Each layer appends its own keys, and caches of several layers need the same next "
              "position: truncate them together."};
}

Error split(std::string_view call, std::string_view rows) {
  return {.op = std::string(call),
          .what = fmt::format("{} were rotated with other heads than they are used with", rows),
          .got = fmt::format("a head of {} that was not rotated as one vector", rows),
          .expected = "a rotation of the same heads, or of a part of each",
          .fix = fmt::format("Rotate a view that has the heads and the head dim of the {}.", rows)};
}

Error otherEmbedding(std::string_view call, std::string_view rows, uint32_t sequence) {
  return {.op = std::string(call),
          .what = fmt::format("{} were rotated by another embedding than the step's keys", rows),
          .got = fmt::format("{} of sequence {} that another RotaryEmbedding rotated", rows, sequence),
          .expected = "one embedding for queries and keys",
          .fix = "Rotate queries and keys with the same RotaryEmbedding, all of its options included."};
}

Error unrotated(std::string_view call, std::string_view rows, const std::string& used) {
  return {.op = std::string(call),
          .what = fmt::format("the step rotates tokens by the cache's next positions and uses other {}", rows),
          .got = fmt::format("{} that were not rotated, for {}", rows, used),
          .expected = fmt::format("the {} that were rotated for {}", rows, used),
          .fix = fmt::format("Pass the {} that the rotation wrote, all heads of them; or rotate queries and keys by "
                             "positions in a tensor. A rotation by an inverse embedding does not count.",
                             rows)};
}

// Calls `check` for each part of the rows whose memory can be known.
template <typename Check>
Result<void> forEach(const UsedRows& uses, const HeadsView& view, Check check) {
  const RotatedRows* const rotated = uses.encoder.rotatedRows();
  if (!rotated || !liesInside(view)) return {};  // the rules refuse what lies outside
  for (const PlacedRows& each : uses.placed) {
    if (each.rows == 0) continue;
    MNK_TRY(check(*rotated, each, RotatedRows::Block(view, each.first, each.rows)));
  }
  return {};
}

// Whether the vector was rotated for this token. Caches of several layers can share a rotation: in another cache, only
// the position counts.
bool isOf(const Vector& vector, const Token& token) {
  const bool isSameCache = vector.token->cache == token.cache;
  return vector.token->position == token.position && (!isSameCache || vector.token->sequence == token.sequence);
}

// Whether it was rotated for another cache, although the step rotates other rows for this one.
bool isOfOtherCache(const RotatedRows& rotated, const Vector& vector, const Token& token) {
  return vector.token->cache != token.cache && rotated.isAnyFor(token);
}

// Whether the vector is not rotated for this token, for certain.
bool isMissing(const RotatedRows& rotated, const Vector& vector, const Token& token, const RotatedRows::Block& block) {
  if (vector.token && isOf(vector, token)) return vector.isReplacedSince;
  return vector.isKnown ? !vector.isWrittenSince : !rotated.isWritten(block, vector);
}

Result<void> checkUse(const UsedRows& uses, const HeadsView& view, bool areKeys) {
  const std::string_view rows = areKeys ? "keys" : "queries";
  return forEach(
      uses, view, [&](const RotatedRows& rotated, const PlacedRows& each, const auto& block) -> Result<void> {
        auto embedding = uses.recording.keyEmbedding(each.sequence);
        const auto tokenOf = [&](const Vector& vector) {
          return Token{&uses.cache, each.sequence, each.position + vector.row};
        };
        const auto isMisplaced = [&](const Vector& vector) {
          if (!vector.isRotated()) return false;
          // Queries of one layer can attend over several caches; keys belong to one.
          return !isOf(vector, tokenOf(vector)) || (areKeys && isOfOtherCache(rotated, vector, tokenOf(vector)));
        };
        const auto isTurnedOtherwise = [&](const Vector& vector) {
          if (!vector.isRotated() || isMisplaced(vector)) return false;
          if (areKeys && !embedding) embedding = vector.token->embedding;
          return embedding && vector.token->embedding != *embedding;
        };
        const auto wrong = rotated.firstWrong(block, [&](const Vector& vector) {
          return (vector.isSplit && vector.isRotated()) || isMisplaced(vector) || isTurnedOtherwise(vector) ||
                 (uses.recording.hasRotated() && isMissing(rotated, vector, tokenOf(vector), block));
        });
        if (!wrong && areKeys && embedding) uses.recording.useEmbedding(each.sequence, embedding);
        if (!wrong) return {};
        if (wrong->isSplit && wrong->isRotated()) return split(uses.call, rows);
        if (isTurnedOtherwise(*wrong)) return otherEmbedding(uses.call, rows, each.sequence);
        if (uses.recording.isOvertaken(each.sequence)) return {};
        const std::string used = tokenText(tokenOf(*wrong).position, each.sequence);
        if (!isMisplaced(*wrong)) return unrotated(uses.call, rows, used);
        const Token& token = *wrong->token;
        return misplaced(
            uses.call, rows,
            tokenText(token.position, token.sequence) + (token.cache == &uses.cache ? "" : " of another cache"), used);
      });
}

}  // namespace

std::vector<PlacedRows> placedRows(std::span<const StepEntry> entries) {
  std::vector<PlacedRows> placed;
  uint64_t first = 0;
  for (const StepEntry& entry : entries) {
    const bool isWhole = entry.before.next + entry.rows == entry.after.next;
    if (isWhole) placed.push_back({entry.sequence, first, entry.rows, entry.before.next});
    first += entry.rows;
  }
  return placed;
}

Result<void> UsedRows::checkKeys(const HeadsView& keys) const {
  return checkUse(*this, keys, true);
}

Result<void> UsedRows::checkQueries(const HeadsView& queries) const {
  if (latentDim != 0) MNK_TRY(checkLatent(queries));
  return checkUse(*this, queries, false);
}

Result<void> UsedRows::checkLatent(const HeadsView& queries) const {
  return forEach(*this, queries, [&](const RotatedRows& rotated, const PlacedRows&, auto block) -> Result<void> {
    block.vectorBytes = latentDim * byteSize(queries.tensor.dtype());
    if (!rotated.firstWrong(block, std::mem_fn(&Vector::isRotated))) return {};
    return Error{
        .op = std::string(call),
        .what = "the latent part of queries was rotated",
        .got = fmt::format("a rotation that begins within the first {} elements of a head", latentDim),
        .expected = fmt::format("a rotation of the {} elements after them",
                                queries.resolved().headDim - std::min(latentDim, queries.resolved().headDim)),
        .fix = "Rotate a view of the last elements: its offset is the latent part, its headStride a whole head."};
  });
}

Result<void> UsedRows::checkEmbedding(uint64_t embedding) const {
  for (const PlacedRows& each : placed) {
    const auto known = each.rows == 0 ? std::nullopt : recording.keyEmbedding(each.sequence);
    if (!known || *known == embedding) continue;
    return Error{.op = std::string(call),
                 .what = "a step rotates tokens of a sequence by two embeddings",
                 .got = fmt::format("another RotaryEmbedding for sequence {}", each.sequence),
                 .expected = "one embedding for all tokens of a sequence",
                 .fix = "Rotate all tokens with the same RotaryEmbedding, all of its options included."};
  }
  return {};
}

Result<void> UsedRows::checkUnrotated(const HeadsView& tokens) const {
  return forEach(*this, tokens, [&](const RotatedRows& rotated, const PlacedRows&, const auto& block) -> Result<void> {
    const auto twice = rotated.firstWrong(block, std::mem_fn(&Vector::isRotated));
    if (!twice) return {};
    return Error{.op = std::string(call),
                 .what = "tokens are rotated twice",
                 .got = fmt::format("tokens that the step has rotated for {}, and has not written since",
                                    tokenText(twice->token->position, twice->token->sequence)),
                 .expected = "tokens that are not rotated",
                 .fix = "Rotate queries and keys once, before the append or with it."};
  });
}

Result<void> UsedRows::checkFollowed(const RotaryPositions& positions) const {
  const auto* number = std::get_if<int64_t>(&positions.source);
  const auto* list = std::get_if<RotaryPositions::List>(&positions.source);
  for (const PlacedRows& each : placed) {
    for (uint64_t row = 0; row < (number ? std::min<uint64_t>(each.rows, 1) : each.rows); ++row) {
      const auto rotatedFor = static_cast<uint64_t>(number ? *number : list->numbers.at(each.first + row));
      if (rotatedFor == each.position + row) continue;
      // Others may have changed the cache between the look at its next positions and the look at where to append.
      for (const auto& [begin, end, sequence] : recording.rotations()) {
        if (sequence == each.sequence && begin != recording.after(sequence).next) {
          return recording.overtakenError(sequence, begin);
        }
        if (sequence == each.sequence) break;
      }
      return misplaced(call, "tokens", fmt::format("position {}", rotatedFor),
                       tokenText(each.position + row, each.sequence));
    }
  }
  return {};
}

Result<void> UsedRows::checkOffsets(uint64_t prefixTokens) const {
  for (const PlacedRows& each : placed) {
    const auto offsets = each.rows == 0 ? std::nullopt : recording.offsetsOf(each.sequence);
    if (!offsets) continue;
    const auto wrong = offsets->anotherThan(prefixTokens);
    if (offsets->areGiven && !wrong) continue;
    return Error{
        .op = std::string(call),
        .what = "rotary positions that follow a cache do not count prefixes",
        .got = offsets->areGiven
                   ? fmt::format("an offset of {} for sequence {}, and prefixes of {}", *wrong, each.sequence,
                                 countText(prefixTokens, "token"))
                   : fmt::format("rotation by the next positions of sequence {}, without offsets", each.sequence),
        .expected = fmt::format("offsets of {}, or offsets in a tensor", prefixTokens),
        .fix = "Rotate with offsets, the number of tokens in all prefixes; or pass `rotary` to appendAndAttend."};
  }
  return {};
}

// The next positions of a cache, as rotary positions.

namespace {

constexpr std::string_view kNextPositions = "AttentionCache.nextPositions";

class NextPositions final : public PositionSource {
 public:
  NextPositions(std::shared_ptr<CacheCursors> cursors, std::vector<uint32_t> sequences,
                std::optional<std::vector<uint32_t>> rowCounts)
      : cursors_(std::move(cursors)), sequences_(std::move(sequences)), rowCounts_(std::move(rowCounts)) {}

  Result<RotaryPositions> resolve(CommandEncoder& encoder, const HeadsView& tokens, const MultiRoPE* rotation,
                                  bool asList) const override {
    return guardedAs(kNextPositions, [&]() -> Result<RotaryPositions> {
      const bool isOne = sequences_.size() == 1;
      uint32_t only = 0;
      if (isOne) {
        MNK_TRY(only, cursors_->numberOf(sequences_[0]));
      }
      const std::span<const uint32_t> listed = isOne ? std::span(&only, 1) : std::span(sequences_);
      MNK_TRY(auto entries, stepEntries(tokens, listed, rowCounts_));
      MNK_TRY(auto recording, CacheCursors::join(cursors_, encoder, listed));
      recording->forgetRotations();
      if (RotatedRows* const rotated = encoder.makeRotatedRows()) rotated->reserve(4 * entries.size());
      std::map<uint32_t, CacheCursor> next;
      for (StepEntry& entry : entries) {
        const auto [known, isFirst] = next.try_emplace(entry.sequence);
        CacheCursor& cursor = known->second;
        if (isFirst) {
          MNK_TRY(cursor, recording->known(entry.sequence));  // once: other threads may append in between
        }
        entry.before = cursor;
        cursor.next += std::min<uint64_t>(entry.rows, kMaxKVExtent);  // more positions are refused below
        entry.after = cursor;
      }
      if (rotation && !rotation->rotary.isInverse) {
        const UsedRows uses{kNextPositions, encoder, *recording, *cursors_, placedRows(entries)};
        MNK_TRY(uses.checkUnrotated(tokens));
        if (rotation->keys) MNK_TRY(uses.checkUnrotated(*rotation->keys));
      }
      std::vector<int32_t> numbers;
      for (const StepEntry& entry : entries) {
        MNK_TRY(checkPositions(entry.sequence, entry.after.next));
        recording->rotate(entry.before.next, entry.after.next, entry.sequence);
        if (entries.size() == 1 && !asList) return RotaryPositions(entry.before.next);
        if (numbers.size() + entry.rows > MultiRoPE::kMaxListed) return tooMany(entries);
        for (uint64_t position = entry.before.next; position < entry.after.next; ++position) {
          numbers.push_back(static_cast<int32_t>(position));
        }
      }
      return RotaryPositions(std::move(numbers));
    });
  }

  void recorded(CommandEncoder& encoder, const MultiRoPE* rotation) const noexcept override {
    auto* const recording = static_cast<CacheCursors::Recording*>(encoder.participant(cursors_.get()));
    if (!recording) return;
    if (RotatedRows* const rotated = encoder.makeRotatedRows(); rotated && rotation) {
      note(*rotated, *recording, *rotation, rotation->queries, rotation->rotatedQueries);
      if (rotation->keys) note(*rotated, *recording, *rotation, *rotation->keys, rotation->rotatedKeys);
    }
    const auto* const offsets = rotation && rotation->offsets ? &*rotation->offsets : nullptr;
    const auto* const numbers = offsets ? std::get_if<std::vector<int32_t>>(offsets) : nullptr;
    recording->keepRotations(offsets, numbers ? std::span<const int32_t>(*numbers) : std::span<const int32_t>());
  }

 private:
  void note(RotatedRows& rotated, const CacheCursors::Recording& recording, const MultiRoPE& rotation,
            const HeadsView& from, const std::optional<HeadsView>& into) const noexcept {
    uint64_t row = 0;
    for (const auto& [begin, end, sequence] : recording.rotations()) {
      const RotatedRows::Token first{cursors_.get(), sequence, begin, hashOf(rotation.rotary)};
      const RotatedRows::Block source(from, row, end - begin);
      if (into) rotated.add(source, std::nullopt);
      const auto token = rotation.rotary.isInverse ? std::nullopt : std::optional(first);
      rotated.add(into ? RotatedRows::Block(*into, row, end - begin) : source, token);
      row += end - begin;
    }
  }

  static Error tooMany(std::span<const StepEntry> entries) {
    const uint64_t tokens = RowCounts::of(entries).total;
    return {.op = std::string(kNextPositions),
            .what = "there are too many tokens of several sequences",
            .got = countText(tokens, "token"),
            .expected = fmt::format("at most {}", countText(MultiRoPE::kMaxListed, "token")),
            .fix = "Rotate fewer tokens at a time, or pass `rotary` to appendAndAttend."};
  }

  const std::shared_ptr<CacheCursors> cursors_;
  const std::vector<uint32_t> sequences_;
  const std::optional<std::vector<uint32_t>> rowCounts_;
};

}  // namespace

RotaryPositions AttentionCache::nextPositions(std::vector<uint32_t> sequences,
                                              std::optional<std::vector<uint32_t>> rowCounts) const {
  return RotaryPositions(std::make_shared<const NextPositions>(std::shared_ptr<CacheCursors>(state_, &state_->cursors),
                                                               std::move(sequences), std::move(rowCounts)));
}

}  // namespace mnk
