// The next positions of a cache, as rotary positions.
#include <algorithm>
#include <map>
#include <vector>

#include "Cache/AttentionCacheState.hpp"
#include "Cache/RotatedTokens.hpp"
#include "Ops/Common/RepeatedOps.hpp"
#include "Runtime/RotatedRows.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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
