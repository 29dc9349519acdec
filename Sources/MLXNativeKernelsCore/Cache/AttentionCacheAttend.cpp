// Attention over a cache is FlashDecode over its memory, at the lengths that an encoder sees.
#include <vector>

#include "Cache/AttentionCacheState.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"

namespace mnk {

namespace {

constexpr std::string_view kOp = "AttentionCache";

// Of queries that an op may yet refuse.
uint64_t rowsOf(const Shape& queries) {
  return queries.rank() == 2 ? 1 : queries[queries.rank() == 4 ? 1 : 0];
}

// A ring that was truncated after it had wrapped holds less than FlashDecode takes for granted, which is the newest
// positions that fit: what the truncated tokens overwrote is lost. Rows must not look further back than to the oldest
// position that is kept, and a window can say so where all rows begin at the same position.
Result<void> keepToWhatIsHeld(FlashDecode& op, const CacheSlots& slots, const CacheCursor& cursor, uint32_t sequence) {
  if (slots.count(cursor) == std::min(cursor.next, slots.capacity)) return {};
  if (op.options.mask) {
    return Error{.op = std::string(kOp),
                 .what = "a mask would count keys that the ring has lost",
                 .got = fmt::format("sequence {}, which was truncated after its ring had wrapped", sequence),
                 .expected = "attention without a mask until the ring is full again",
                 .fix = "Leave the mask out, append as many tokens as were truncated first, or reset the sequence."};
  }
  const uint64_t rows = rowsOf(op.queries.tensor.shape());
  const uint64_t oldest = slots.oldestKept(cursor);
  // What the first of the rows may see, its own position included.
  const uint64_t held = cursor.next >= oldest + rows ? cursor.next - oldest - rows + 1 : 0;
  if (op.options.window != 0 && op.options.window <= held) return {};
  if (slots.pinned == 0 && rows == 1 && op.sequences.size() == 1 && held != 0) {
    op.options.window = static_cast<uint32_t>(held);
    return {};
  }
  return Error{.op = std::string(kOp),
               .what = "the ring has lost positions that these rows would see",
               .got = fmt::format("{} of sequence {}, which was truncated after its ring had wrapped: positions before "
                                  "{} are overwritten",
                                  countText(rows, "row"), sequence, oldest),
               .expected = held == 0 ? fmt::format("rows at position {} or later", oldest)
                                     : fmt::format("a window of at most {}", held),
               .fix =
                   "Pass such a window, attend to this sequence one row at a time (where nothing is pinned), append "
                   "as many tokens as were truncated first, or reset the sequence and append its tokens again."};
}

// One row of each sequence, as tensors that have the axis of rows. Others stay as they are, for the rules to judge.
Result<void> addRowAxis(Tensor& tensor, uint32_t rank) {
  const Shape& shape = tensor.shape();
  if (shape.rank() != rank) return {};
  std::vector<uint64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.insert(extents.begin() + 1, 1);
  auto wider = Shape::make(extents);
  if (!wider) return std::move(wider).error();
  auto reshaped = tensor.reshaped(*wider);
  if (!reshaped) return std::move(reshaped).error();
  tensor = std::move(*reshaped);
  return {};
}

Result<void> addRowAxes(FlashDecode& op) {
  if (op.queries.tensor.shape().rank() != 3) return {};
  if (auto added = addRowAxis(op.queries.tensor, 3); !added) return added;
  AttentionResults& results = op.results;
  if (results.into) {
    if (auto added = addRowAxis(*results.into, 3); !added) return added;
  }
  if (results.partials) {
    if (auto added = addRowAxis(results.partials->sums, 3); !added) return added;
    if (auto added = addRowAxis(results.partials->stats, 3); !added) return added;
  }
  if (results.logSumExp) return addRowAxis(*results.logSumExp, 2);
  return {};
}

Result<void> encodeOver(FlashDecode op, CommandEncoder& encoder, const CacheStorage& storage,
                        const CacheCursors& cursors, std::span<const uint32_t> sequences) {
  op.over = storage.view();
  if (const auto& quantized = storage.quantizedView()) op.over = *quantized;
  std::vector<CacheCursor> seen;
  for (uint32_t sequence : sequences) {
    auto cursor = cursors.seenBy(encoder, sequence);
    if (!cursor) return std::move(cursor).error();
    if (cursor->suspectFrom) return suspectError(sequence, *cursor);
    op.sequences.push_back({.sequence = sequence, .length = cursor->next});
    seen.push_back(*cursor);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (auto kept = keepToWhatIsHeld(op, cursors.slots(), seen[i], sequences[i]); !kept) return kept;
  }
  return encoder.encode(op);
}

}  // namespace

Result<void> AttentionCache::attend(CommandEncoder& encoder, const Tensor& queries, const AttentionResults& results,
                                    const AttentionOptions& options, uint32_t sequence) const {
  return guarded(kOp, [&]() -> Result<void> {
    return encodeOver({.queries = queries, .results = results, .options = options}, encoder, state_->storage,
                      state_->cursors, {&sequence, 1});
  });
}

Result<void> AttentionCache::attend(CommandEncoder& encoder, const Tensor& queries, const AttentionResults& results,
                                    const AttentionOptions& options, std::span<const uint32_t> sequences) const {
  return guarded(kOp, [&]() -> Result<void> {
    FlashDecode op{.queries = queries, .results = results, .options = options};
    if (auto added = addRowAxes(op); !added) return added;
    return encodeOver(std::move(op), encoder, state_->storage, state_->cursors, sequences);
  });
}

}  // namespace mnk
