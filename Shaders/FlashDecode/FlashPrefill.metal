// Attention of many rows over a cache with 8x8 matrices and f32 accumulation. A threadgroup computes a tile of rows of
// one head of the cache: all query heads of some tokens. It loads each tile of `Keys` keys and values once, if any of
// its rows sees it. PrefillRows.h and PrefillTile.h have the phases of rows and of a tile. Each simdgroup computes
// `8 * RowBlocks` rows, or `Dim` elements of them if `flashSimdgroupsPerRow` simdgroups share the rows.
#include "PrefillRows.h"

template <typename T, ushort Dim, ushort Extra, ushort RowBlocks, ushort Keys>
kernel void flashPrefill(MNK_ATTENTION_PARAMETERS) {
  constexpr ushort Blocks = Keys / 8;
  constexpr bool IsLatent = Extra != 0;
  constexpr ushort KeyDim = IsLatent ? Extra : Dim;
  constexpr ushort ValuePairing = IsLatent ? kSingleVectors : kValuePairs;
  constexpr ushort KeyPairing = IsLatent || Blocks % 2 != 0 ? kSingleVectors : kKeyPairs;
  constexpr ushort ValueVectors = vectorsOfUnit(ValuePairing);
  constexpr ushort KeyVectors = vectorsOfUnit(KeyPairing);
  // What threads keep of the next tile, so that its loads overlap with the arithmetic of this one: all of it if there
  // are at least eight simdgroups.
  constexpr uint Parts = IsLatent ? 4 : Dim > 64 && Keys * sizeof(T) <= 32 ? 2 : 1;  // as planned, at most
  constexpr ushort ValueUnits = (Keys * Dim * Parts / (8 * ValueVectors) + 255) / 256;
  constexpr ushort KeyUnits = (Keys * KeyDim * Parts / (8 * KeyVectors) + 255) / 256;
  constexpr uint Vectors = IsLatent ? Keys : 2 * Keys;  // queries that fit in the memory of the tiles
  const AttentionOperands operands{MNK_ATTENTION_ARGUMENTS};
  const uint threads = simdgroups * 32u;
  const uint threadIndex = simdgroup * 32u + lane;
  const MatrixLane at = matrixLane(lane);

  // Threadgroups that have fewer simdgroups than were planned share the rows of each that was.
  const uint sharing = grid.z / plannedGroups(operands);
  const uint share = sharing > 1u ? place.z % sharing : 0u;
  if (sharing > 1u) {
    place.z /= sharing;
  }
  const AttentionTokens tokens = tokensOf(operands, place);
  constant FlashDecodeSequence& sequence = sequences[tokens.sequence];
  const PrefillRows rows = prefillRows<8 * RowBlocks>(operands, tokens, share);
  if (rows.first >= rows.end) {
    return;
  }

  const uint keyDim = KeyDim * flashSimdgroupsPerRow;
  const uint headDim = Dim * flashSimdgroupsPerRow;
  CacheHead head = cacheHead(operands, tokens, keyDim, headDim);
  if (IsLatent && flashIsOneTensor) {
    joinVectors(head.keys, head.values, head.first);
  }
  const uint keyStride = KeyVectors * kFlashPrefillKeyStride(keyDim);
  const uint valueStride = IsLatent ? kFlashPrefillKeyStride(headDim) : kFlashPrefillPairStride(headDim);
  threadgroup T* keyTile = reinterpret_cast<threadgroup T*>(pool);
  threadgroup T* valueTile = keyTile + Keys / KeyVectors * keyStride;
  threadgroup float* keyScaleTile = reinterpret_cast<threadgroup float*>(valueTile + Keys / ValueVectors * valueStride);
  threadgroup float* valueScaleTile = keyScaleTile + Keys;
  threadgroup float2* rowStats = reinterpret_cast<threadgroup float2*>(keyScaleTile);
  threadgroup float* keyCodebook = keyScaleTile + 4 * Keys;
  threadgroup float* valueCodebook = keyCodebook + codebookFloats(keyCodeBits());
  threadgroup float2* parts = reinterpret_cast<threadgroup float2*>(valueCodebook + codebookFloats(valueCodeBits())) +
                              rows.rowGroup * flashSimdgroupsPerRow * (RowBlocks * Blocks * 32);
  // Keys and values are shared out from opposite ends, because there may be more threads than units.
  const PrefillUnits<KeyUnits, Keys, KeyPairing> keyUnits{head.keys, keyStride, threadIndex, threads};
  const PrefillUnits<ValueUnits, Keys, ValuePairing> valueUnits{
      head.values, valueStride, threads - 1u - threadIndex, threads};
  CachePiece<8> nextKeys[KeyUnits * KeyVectors];
  CachePiece<8> nextValues[ValueUnits * ValueVectors];

  // Rows are ordered by position: the first row sees the oldest keys and the last row the newest.
  const uint windowBegin = attentionRow(operands, tokens, rows.first).firstKey;
  const uint lastEnd = attentionRow(operands, tokens, rows.first + rows.count - 1u).endKey;
  const KeyRange split = keysOfSplit(sequence, place.x);
  const uint end = min(split.end, lastEnd);
  uint base = flashSeesPinned ? split.begin : max(split.begin, windowBegin);
  fetchUnits(keyUnits, nextKeys, p, sequence, base, end);
  fetchUnits(valueUnits, nextValues, p, sequence, base, end);
  fillCodebooks(keyCodebook, valueCodebook, threadIndex, threads);
  MatrixRows<T, Dim + Extra, Dim, RowBlocks> state;
  startSoftmax(state);
  if (usesQueriesAsTheyAre(sizeof(T) == 2)) {
    loadQueries(state, operands, tokens, rows, at);
  } else {
    prepareQueries<Vectors>(state, keyTile, rowStats, operands, tokens, rows, at);
  }

  // Keys that the simdgroup's rows see: some row those in [ownBegin, ownEnd), each row those of `common`.
  const uint first = rows.first + rows.own;
  const uint last = rows.first + min(rows.own + 8u * RowBlocks, rows.count) - 1u;
  const AttentionRow oldest = attentionRow(operands, tokens, min(first, rowsOf(p, tokens) - 1u));
  const AttentionRow newest = attentionRow(operands, tokens, min(last, rowsOf(p, tokens) - 1u));
  const uint ownBegin = flashSeesPinned ? 0u : oldest.firstKey;
  const uint ownEnd = newest.endKey;
  const KeyRange common{newest.firstKey, min(end, oldest.endKey)};
  // Where the lane's elements and scales start, in the part of its simdgroup.
  threadgroup const T* ownValues = valueTile + rows.part * Dim * ValueVectors;
  threadgroup const T* laneKeys = keyTile + rows.part * KeyDim * KeyVectors + startOfKeys<KeyPairing>(keyStride, at);
  threadgroup const T* laneValueKeys = ownValues + startOfKeys<kSingleVectors>(valueStride, at);
  threadgroup const float* laneKeyScales = keyScaleTile + keyOfRow(at.row);
  threadgroup const float* laneValueScales = valueScaleTile + startOfScales<Dim, Blocks>(rows.part, at);
  if (!IsLatent) {
    storeUnits(keyUnits, nextKeys, keyTile, keyScaleTile, keyCodebook, p, sequence, base, end);
  }
  while (base < end) {
    uint next = base + Keys;
    if (flashSeesPinned && next >= p.pinned) {
      next = max(next, windowBegin);
    }
    // The keys of this tile are stored; all simdgroups are done with the previous values.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    storeUnits(valueUnits, nextValues, valueTile, valueScaleTile, valueCodebook, p, sequence, base, end);
    if (IsLatent) {
      storeUnits(keyUnits, nextKeys, keyTile, keyScaleTile, keyCodebook, p, sequence, base, end);
      threadgroup_barrier(mem_flags::mem_threadgroup);  // values are keys too
      fetchUnits(valueUnits, nextValues, p, sequence, next, end);
    }
    fetchUnits(keyUnits, nextKeys, p, sequence, next, end);

    const bool isUsed = rows.isUsed && base < ownEnd && base + Keys > ownBegin;
    MatrixScores<RowBlocks, Blocks> scores;
    if (isUsed) {
      scores = scoreTile<KeyPairing, Blocks>(
          state, laneKeys, keyStride, laneKeyScales, laneValueKeys, valueStride, laneValueScales, parts, rows.part,
          lane);
    }
    // Values and partial products are stored; all simdgroups are done with the keys.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!IsLatent && next < end) {
      storeUnits(keyUnits, nextKeys, keyTile, keyScaleTile, keyCodebook, p, sequence, next, end);
      fetchUnits(valueUnits, nextValues, p, sequence, next, end);
    }
    if (isUsed) {
      completeScores(scores, state, parts, lane);
      const bool isCommon = base >= common.begin && base + Keys <= common.end;
      if (changesScores() || !isCommon) {
        setRows(state, operands, tokens, first, at);  // most tiles do not need them, so they are not kept in registers
        maskScores(scores, state, operands, sequence, base + keyOfRow(at.row), end, isCommon);
      }
      updateSoftmax(scores, state);
      if (kvHasQuantizedValues) {
        float scales[Blocks];
        MNK_UNROLL
        for (ushort n = 0; n < Blocks; ++n) {
          scales[n] = laneValueScales[n * 8u];
        }
        scaleProbs(scores, state, scales, flashHasMask || !isCommon);
      }
      const bool mayHaveSpecials = !kvHasQuantizedValues && (flashHasMask || !isCommon);
      accumulateValues<!IsLatent>(scores, state, ownValues, valueStride, mayHaveSpecials, at, lane);
    }
    base = next;
  }

  if (flashIsSplit || !kvHasQuantizedValues || kvIsUnrotated) {
    storeRows(state, operands, tokens, rows, at);
  } else {  // the inverse rotation needs whole rows
    constexpr uint ResultRows = Vectors * sizeof(T) / 4;
    finishRows<ResultRows>(state, pool, rowStats, operands, tokens, rows, at);
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
