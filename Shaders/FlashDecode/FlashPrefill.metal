// Attention of many rows over a cache with 8x8 matrices and f32 accumulation. A threadgroup computes a tile of rows of
// one head of the cache: all query heads of some tokens. It loads each tile of `Keys` keys and values once, if any of
// its rows sees it. PrefillRows.h and PrefillTile.h have the phases of rows and of a tile. Each simdgroup computes
// `8 * RowBlocks` rows, or `Dim` elements of them if `flashSimdgroupsPerRow` simdgroups share the rows.
#include "PrefillRows.h"

template <typename T, ushort Dim, ushort Extra, ushort RowBlocks, ushort Keys>
kernel void flashPrefill(
    MNK_ATTENTION_PARAMETERS threadgroup float* pool [[threadgroup_memory(0)]],
    uint3 place [[threadgroup_position_in_grid]], uint3 grid [[threadgroups_per_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  typedef PrefillShape<T, Dim, Extra, RowBlocks, Keys> Shape;
  constexpr bool IsLatent = Shape::IsLatent;
  const AttentionOperands operands{MNK_ATTENTION_ARGUMENTS};
  const uint threads = simdgroups * 32u;
  const uint threadIndex = simdgroup * 32u + lane;
  // Keys and values are shared out from opposite ends, because there may be more threads than units.
  const uint reversed = threads - 1u - threadIndex;
  const MatrixLane at = matrixLane(lane);

  const uint sharing = grid.z / plannedGroups(operands);
  const uint share = sharing > 1u ? place.z % sharing : 0u;
  if (sharing > 1u) {
    place.z /= sharing;
  }
  const AttentionTokens tokens = tokensOf(operands, place);
  constant FlashDecodeSequence& sequence = sequences[tokens.sequence];
  const PrefillRows rows = prefillRows<Shape::OwnRows>(p, tokens, share, simdgroups, simdgroup);
  if (rows.count == 0u) {
    return;
  }
  const CacheHead head =
      cacheHead(operands, tokens, Shape::KeyDim * flashSimdgroupsPerRow, Dim * flashSimdgroupsPerRow, IsLatent);
  const PrefillMemory<T> memory = memoryIn<Shape>(pool, head);

  // Rows are ordered by position: the first row sees the oldest keys and the last row the newest.
  const uint windowBegin = attentionRow(operands, tokens, rows.first).firstKey;
  const uint lastEnd = attentionRow(operands, tokens, rows.first + rows.count - 1u).endKey;
  const KeyRange split = keysOfSplit(sequence, place.x);
  const uint end = min(split.end, lastEnd);
  uint base = flashSeesPinned ? split.begin : max(split.begin, windowBegin);
  CachePiece<8> nextKeys[Shape::KeyUnits * Shape::KeyVectors];
  CachePiece<8> nextValues[Shape::ValueUnits * Shape::ValueVectors];
  fetchUnits<Shape::KeyUnits, Keys, Shape::KeyPairing>(
      nextKeys, memory.keys, p, sequence, base, end, threadIndex, threads);
  fetchUnits<Shape::ValueUnits, Keys, Shape::ValuePairing>(
      nextValues, memory.values, p, sequence, base, end, reversed, threads);
  fillCodebooks(memory.codebooks, threadIndex, threads);

  MatrixRows<T, Dim + Extra, Dim, RowBlocks> state;
  startSoftmax(state);
  if (usesQueriesAsTheyAre(sizeof(T) == 2)) {
    loadQueries<Shape>(state, operands, tokens, rows, at);
  } else {
    prepareQueries<Shape>(state, memory, operands, tokens, rows, at, simdgroups, simdgroup, lane);
  }

  // Keys that the simdgroup's rows see: some row those in [ownBegin, ownEnd), each row those of `common`.
  const uint firstOwn = min(rows.first + rows.own, p.group * tokens.count - 1u);
  const uint lastOwn = min(rows.first + min(rows.own + Shape::OwnRows, rows.count) - 1u, p.group * tokens.count - 1u);
  const AttentionRow oldest = attentionRow(operands, tokens, firstOwn);
  const AttentionRow newest = attentionRow(operands, tokens, lastOwn);
  const uint ownBegin = flashSeesPinned ? 0u : oldest.firstKey;
  const uint ownEnd = newest.endKey;
  const KeyRange common{newest.firstKey, min(end, oldest.endKey)};
  const PrefillLane<T> own = prefillLane<Shape>(memory, rows.rowGroup, rows.part, at);
  if (!IsLatent) {
    storeUnits<Shape::KeyUnits, Keys, Shape::KeyPairing>(
        memory.keys, nextKeys, p, sequence, base, end, threadIndex, threads);
  }
  while (base < end) {
    uint next = base + Keys;
    if (flashSeesPinned && next >= p.pinned) {
      next = max(next, windowBegin);
    }
    // The keys of this tile are stored; all simdgroups are done with the previous values.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    storeUnits<Shape::ValueUnits, Keys, Shape::ValuePairing>(
        memory.values, nextValues, p, sequence, base, end, reversed, threads);
    if (IsLatent) {
      storeUnits<Shape::KeyUnits, Keys, Shape::KeyPairing>(
          memory.keys, nextKeys, p, sequence, base, end, threadIndex, threads);
      threadgroup_barrier(mem_flags::mem_threadgroup);  // values are keys too
      fetchUnits<Shape::ValueUnits, Keys, Shape::ValuePairing>(
          nextValues, memory.values, p, sequence, next, end, reversed, threads);
    }
    fetchUnits<Shape::KeyUnits, Keys, Shape::KeyPairing>(
        nextKeys, memory.keys, p, sequence, next, end, threadIndex, threads);

    const bool isUsed = rows.isUsed && base < ownEnd && base + Keys > ownBegin;
    MatrixScores<RowBlocks, Shape::Blocks> scores;
    if (isUsed) {
      scores = scoreTile<Shape>(state, memory, own, rows.part, lane);
    }
    // Values and partial products are stored; all simdgroups are done with the keys.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!IsLatent && next < end) {
      storeUnits<Shape::KeyUnits, Keys, Shape::KeyPairing>(
          memory.keys, nextKeys, p, sequence, next, end, threadIndex, threads);
      fetchUnits<Shape::ValueUnits, Keys, Shape::ValuePairing>(
          nextValues, memory.values, p, sequence, next, end, reversed, threads);
    }
    if (isUsed) {
      if (flashSimdgroupsPerRow > 1u) {
        sumParts(scores, own.parts, lane);
      }
      scaleScores<IsLatent>(scores, state);
      const bool isCommon = base >= common.begin && base + Keys <= common.end;
      if (changesScores() || !isCommon) {
        setRows(state, operands, tokens, rows, at);
        maskScores(scores, state, operands, sequence, base + keyOfRow(at.row), end, isCommon);
      }
      updateSoftmax(scores, state);
      if (kvHasQuantizedValues) {
        float scales[Shape::Blocks];
        MNK_UNROLL
        for (ushort n = 0; n < Shape::Blocks; ++n) {
          scales[n] = own.valueScales[n * 8u];
        }
        scaleProbs(scores, state, scales, flashHasMask || !isCommon);
      }
      const bool mayHaveSpecials = !kvHasQuantizedValues && (flashHasMask || !isCommon);
      accumulateValues<!IsLatent>(scores, state, own.values, memory.values.stride, mayHaveSpecials, at, lane);
    }
    base = next;
  }

  const AttentionOutputs out = outputsOf(operands);
  if (flashIsSplit || !kvHasQuantizedValues || kvIsUnrotated) {
    storeRows(state, p, tokens, rows, place.x, at, out);
  } else {
    finishRows<Shape>(state, pool, memory.rowStats, p, tokens, rows, at, simdgroups, simdgroup, lane, out);
  }
}

#define ROW(type, dim, rowBlocks, keys) \
  instantiate_kernel(                   \
      "flashPrefill_" #type "_" #dim "_" #rowBlocks "_" #keys, flashPrefill, type, dim, 0, rowBlocks, keys)
MNK_FLASH_PREFILL_INSTANCES(ROW)
#undef ROW
#define ROW(type, dim, extra, rowBlocks, keys) \
  instantiate_kernel(                          \
      "flashPrefill_latent_" #type "_" #rowBlocks "_" #keys, flashPrefill, type, dim, extra, rowBlocks, keys)
MNK_FLASH_LATENT_PREFILL_INSTANCES(ROW)
#undef ROW
