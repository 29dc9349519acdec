// Attention of many rows over a cache with 8x8 matrices and f32 accumulation. A threadgroup computes a tile of rows of
// one head of the cache: all query heads of some tokens. It loads each tile of `Keys` keys and values once, if any of
// its rows sees it. PrefillRows.h and PrefillTile.h have the phases of rows and of a tile. Each simdgroup computes
// `8 * RowBlocks` rows, or `Dim` elements of them if `flashSimdgroupsPerRow` simdgroups share the rows.
#include "PrefillRows.h"

template <typename T, ushort Dim, ushort Extra, ushort RowBlocks, ushort Keys>
kernel void flashPrefill(
    constant FlashDecodeParams& p [[buffer(kFlashDecodeParams)]],
    constant FlashDecodeSequence* sequences [[buffer(kFlashDecodeSequences)]],
    device const uchar* queries [[buffer(kFlashDecodeQueries)]], device const uchar* keys [[buffer(kFlashDecodeKeys)]],
    device const uchar* values [[buffer(kFlashDecodeValues)]],
    device const uchar* keyScales [[buffer(kFlashDecodeKeyScales), function_constant(kvHasQuantizedKeys)]],
    device const uchar* valueScales [[buffer(kFlashDecodeValueScales), function_constant(kvHasQuantizedValues)]],
    device const float* keyMeans [[buffer(kFlashDecodeKeyMeans), function_constant(kvHasKeyMeans)]],
    device const float* valueMeans [[buffer(kFlashDecodeValueMeans), function_constant(kvHasValueMeans)]],
    device const float* channelScales [[buffer(kFlashDecodeChannelScales), function_constant(kvHasChannelScales)]],
    device const uchar* mask [[buffer(kFlashDecodeMask), function_constant(flashHasMask)]],
    device const float* slopes [[buffer(kFlashDecodeSlopes), function_constant(flashHasSlopes)]],
    device const float* sinks [[buffer(kFlashDecodeSinks), function_constant(flashHasSinks)]],
    device uchar* into [[buffer(kFlashDecodeInto), function_constant(flashWritesResults)]],
    device float* logSumExp [[buffer(kFlashDecodeLogSumExp), function_constant(flashHasLogSumExp)]],
    device float* sums [[buffer(kFlashDecodeSums), function_constant(flashWritesSums)]],
    device float* stats [[buffer(kFlashDecodeStats), function_constant(flashWritesSums)]],
    constant FlashDecodeRun* runs [[buffer(kFlashDecodeRuns), function_constant(flashIsRagged)]],
    threadgroup float* pool [[threadgroup_memory(0)]], uint3 place [[threadgroup_position_in_grid]],
    uint3 grid [[threadgroups_per_grid]], uint simdgroups [[simdgroups_per_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr ushort Blocks = Keys / 8;
  constexpr ushort OwnRows = 8 * RowBlocks;
  constexpr bool IsLatent = Extra != 0;
  constexpr ushort ValuePairing = IsLatent ? kSingleVectors : kValuePairs;
  constexpr ushort KeyPairing = IsLatent || Blocks % 2 != 0 ? kSingleVectors : kKeyPairs;
  constexpr ushort ValueVectors = vectorsOfUnit(ValuePairing);
  constexpr ushort KeyVectors = vectorsOfUnit(KeyPairing);
  // What threads keep of the next tile, so that its loads overlap with the arithmetic of this one: all of it if there
  // are at least eight simdgroups.
  constexpr uint Parts = IsLatent ? 4 : Dim > 64 && Keys * sizeof(T) <= 32 ? 2 : 1;  // as planned, at most
  constexpr ushort ValueUnits = (Keys * Dim * Parts / (8 * ValueVectors) + 255) / 256;
  constexpr ushort KeyUnits = (Keys * (IsLatent ? Extra : Dim) * Parts / (8 * KeyVectors) + 255) / 256;
  const uint headDim = Dim * flashSimdgroupsPerRow;
  const uint keyDim = IsLatent ? Extra * flashSimdgroupsPerRow : headDim;
  const uint latentDim = IsLatent ? headDim : 0u;
  const uint threadIndex = simdgroup * 32u + lane;
  const uint threads = simdgroups * 32u;
  const MatrixLane at = matrixLane(lane);

  threadgroup T* tile = reinterpret_cast<threadgroup T*>(pool);
  const uint keyStride = KeyVectors * kFlashPrefillKeyStride(keyDim);
  const uint valueStride = IsLatent ? kFlashPrefillKeyStride(headDim) : kFlashPrefillPairStride(headDim);
  threadgroup T* keyTile = tile;
  threadgroup T* valueTile = tile + Keys / KeyVectors * keyStride;
  threadgroup float2* rowStats = reinterpret_cast<threadgroup float2*>(valueTile + Keys / ValueVectors * valueStride);
  threadgroup float* keyTileScales = reinterpret_cast<threadgroup float*>(rowStats);
  threadgroup float* valueTileScales = keyTileScales + Keys;
  threadgroup float* keyLevels = reinterpret_cast<threadgroup float*>(rowStats + 2 * Keys);
  threadgroup float* valueLevels = kvHasQuantizedKeys ? keyLevels + (1u << kvKeyBits) : keyLevels;
  threadgroup float2* parts =
      reinterpret_cast<threadgroup float2*>(kvHasQuantizedValues ? valueLevels + (1u << kvValueBits) : valueLevels);

  const uint rowGroup = simdgroup / flashSimdgroupsPerRow;
  const uint part = simdgroup - rowGroup * flashSimdgroupsPerRow;
  const uint rowGroups = simdgroups / flashSimdgroupsPerRow;
  // Threadgroups that have fewer simdgroups than were planned share the rows of each that was.
  const uint sharing = grid.z / plannedGroups(p, runs);
  const uint share = sharing > 1u ? place.z % sharing : 0u;
  if (sharing > 1u) {
    place.z /= sharing;
  }
  const AttentionTokens tokens = tokensOf(p, runs, place);
  constant FlashDecodeSequence& sequence = sequences[tokens.sequence];
  const uint kvHead = place.y;
  const uint rows = p.group * tokens.count;
  // Tiles of the newest rows have the most keys and are scheduled first, to balance the load.
  const uint tileIndex = tokens.rowGroups - 1u - tokens.rowGroup;
  const uint tileRows = kFlashPrefillTileRows(rows, tokens.rowGroups, OwnRows);
  const uint tileEnd = min((tileIndex + 1u) * tileRows, rows);
  const uint firstRow = tileIndex * tileRows + share * rowGroups * OwnRows;
  if (firstRow >= tileEnd) {
    return;
  }

  const ulong headBase = firstVector(p, sequence, kvHead);
  CacheVectors keyVectors =
      vectorsFrom(keys, keyScales, headBase, keyCodeBits(), keyDim, p.keyCodeBytes, p.keyInverseRoot, p.keyScaleFactor);
  CacheVectors valueVectors = vectorsFrom(
      values, valueScales, headBase, valueCodeBits(), headDim, p.valueCodeBytes, p.finish.inverseRoot,
      p.valueScaleFactor);
  if (IsLatent && flashIsOneTensor) {
    joinVectors(keyVectors, valueVectors, headBase);
  }
  const uint count = min(rowGroups * OwnRows, tileEnd - firstRow);
  const uint own = rowGroup * OwnRows;  // first of this simdgroup's rows, relative to firstRow
  const bool hasRows = rowGroup < rowGroups && own < count;

  // Rows are ordered by position: the first row sees the oldest keys and the last row the newest.
  const uint windowBegin = attentionRow(p, sequence, tokens, kvHead, firstRow, slopes).firstKey;
  const uint lastEnd = attentionRow(p, sequence, tokens, kvHead, firstRow + count - 1u, slopes).endKey;
  const uint splitBegin = min(sequence.firstKey + place.x * sequence.splitKeys, sequence.endKey);
  const uint splitEnd = min(splitBegin + sequence.splitKeys, sequence.endKey);
  const uint end = min(splitEnd, lastEnd);
  uint base = flashSeesPinned ? splitBegin : max(splitBegin, windowBegin);
  CachePiece<8> nextKeys[KeyUnits * KeyVectors];
  CachePiece<8> nextValues[ValueUnits * ValueVectors];
  // Keys and values are shared out from opposite ends, because there may be more threads than units.
  const uint reversed = threads - 1u - threadIndex;
  fetchUnits<KeyUnits, Keys, KeyPairing>(nextKeys, keyVectors, p, sequence, base, end, threadIndex, threads);
  fetchUnits<ValueUnits, Keys, ValuePairing>(nextValues, valueVectors, p, sequence, base, end, reversed, threads);
  if (kvHasQuantizedKeys) {
    fillCodebook(keyLevels, kvKeyBits, threadIndex, threads);
  }
  if (kvHasQuantizedValues) {
    fillCodebook(valueLevels, kvValueBits, threadIndex, threads);
  }

  MatrixRows<T, Dim + Extra, Dim, RowBlocks> state;
  startSoftmax(state);
  if (usesQueriesAsTheyAre(sizeof(T) == 2)) {
    device const half* from = reinterpret_cast<device const half*>(queries);
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      const uint row = firstRow + own + b * 8u + at.column;
      device const half* left = from + queryStart(p, tokens, kvHead, min(row, rows - 1u));
      device const half* right = from + queryStart(p, tokens, kvHead, min(row + 1u, rows - 1u));
      setQueries<0, Dim>(state, b, left + part * Dim, right + part * Dim, at);
      setQueries<Dim, Extra>(state, b, left + latentDim + part * Extra, right + latentDim + part * Extra, at);
      state.scoreScale[b] = float2(p.queryScale);
      state.bias[b] = float2(0.0f);
    }
  } else {
    constexpr uint Vectors = IsLatent ? Keys : 2 * Keys;  // queries that fit in the memory of the key and value tiles
    const uint stride = latentDim + keyDim + kFlashPrefillRowPadding;
    for (uint first = 0; first < count; first += Vectors) {
      threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups are done with the previous queries
      for (uint r = first + simdgroup; r < min(first + Vectors, rowGroups * OwnRows); r += simdgroups) {
        const ulong start = queryStart(p, tokens, kvHead, min(firstRow + r, rows - 1u));
        prepareRow<T, IsLatent>(
            tile + (r - first) * stride, rowStats + (r - first), queries, start, p, kvHead, latentDim, keyDim, lane,
            keyMeans, channelScales, valueMeans);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        const uint r = own + b * 8u;
        if (hasRows && r >= first && r < first + Vectors) {
          threadgroup const T* left = tile + (r - first + at.column) * stride;
          setQueries<0, Dim>(state, b, left + part * Dim, left + stride + part * Dim, at);
          left += latentDim + part * Extra;
          setQueries<Dim, Extra>(state, b, left, left + stride, at);
          const float2 x = rowStats[r - first + at.column];
          const float2 y = rowStats[r - first + at.column + 1u];
          state.bias[b] = float2(x.x, y.x);
          state.scoreScale[b] = float2(x.y, y.y);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups have read their queries
  }

  // Keys that the simdgroup's rows see: some row those in [ownBegin, ownEnd), each row those in [commonBegin,
  // commonEnd).
  const uint lastRow = min(firstRow + min(own + OwnRows, count) - 1u, rows - 1u);
  const AttentionRow oldest = attentionRow(p, sequence, tokens, kvHead, min(firstRow + own, rows - 1u), slopes);
  const AttentionRow newest = attentionRow(p, sequence, tokens, kvHead, lastRow, slopes);
  const uint ownBegin = flashSeesPinned ? 0u : oldest.firstKey;
  const uint ownEnd = newest.endKey;
  const uint commonBegin = newest.firstKey;
  const uint commonEnd = min(end, oldest.endKey);

  threadgroup const T* ownValues = valueTile + part * Dim * ValueVectors;
  threadgroup const T* laneKeys =
      keyTile + part * (IsLatent ? Extra : Dim) * KeyVectors + startOfKeys<KeyPairing>(keyStride, at);
  threadgroup const T* laneValueKeys = ownValues + startOfKeys<kSingleVectors>(valueStride, at);
  threadgroup const float* laneKeyScales = keyTileScales + keyOfRow(at.row);
  threadgroup const float* laneValueScales = valueTileScales + part * Dim / kScaledElements * Keys + keyOfRow(at.row);
  threadgroup float2* ownParts = parts + rowGroup * flashSimdgroupsPerRow * (RowBlocks * Blocks * 32);
  if (!IsLatent) {
    storeUnits<KeyUnits, Keys, KeyPairing>(
        keyTile, keyStride, keyTileScales, keyLevels, nextKeys, keyVectors, p, sequence, base, end, threadIndex,
        threads);
  }
  while (base < end) {
    uint next = base + Keys;
    if (flashSeesPinned && next >= p.pinned) {
      next = max(next, windowBegin);
    }
    // The keys of this tile are stored; all simdgroups are done with the previous values.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    storeUnits<ValueUnits, Keys, ValuePairing>(
        valueTile, valueStride, valueTileScales, valueLevels, nextValues, valueVectors, p, sequence, base, end,
        reversed, threads);
    if (IsLatent) {
      storeUnits<KeyUnits, Keys, KeyPairing>(
          keyTile, keyStride, keyTileScales, keyLevels, nextKeys, keyVectors, p, sequence, base, end, threadIndex,
          threads);
      threadgroup_barrier(mem_flags::mem_threadgroup);  // values are keys too
      fetchUnits<ValueUnits, Keys, ValuePairing>(nextValues, valueVectors, p, sequence, next, end, reversed, threads);
    }
    fetchUnits<KeyUnits, Keys, KeyPairing>(nextKeys, keyVectors, p, sequence, next, end, threadIndex, threads);

    const bool isUsed = hasRows && base < ownEnd && base + Keys > ownBegin;
    MatrixScores<RowBlocks, Blocks> scores;
    if (isUsed) {
      constexpr ushort First = IsLatent ? Dim : 0;
      constexpr ushort Count = IsLatent ? Extra : Dim;
      scores =
          multiplyKeys<First, Count, Blocks, KeyPairing>(state, laneKeys, keyStride, laneKeyScales, kvHasQuantizedKeys);
      if (IsLatent) {
        const MatrixScores<RowBlocks, Blocks> rest = multiplyKeys<0, Dim, Blocks, kSingleVectors>(
            state, laneValueKeys, valueStride, laneValueScales, kvHasQuantizedValues);
        MNK_UNROLL
        for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
          scores.of[i / Blocks][i % Blocks] += rest.of[i / Blocks][i % Blocks];
        }
      }
      if (flashSimdgroupsPerRow > 1u) {
        MNK_UNROLL
        for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
          ownParts[(part * (RowBlocks * Blocks) + i) * 32u + lane] = scores.of[i / Blocks][i % Blocks];
        }
      }
    }
    // Values and partial products are stored; all simdgroups are done with the keys.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!IsLatent && next < end) {
      storeUnits<KeyUnits, Keys, KeyPairing>(
          keyTile, keyStride, keyTileScales, keyLevels, nextKeys, keyVectors, p, sequence, next, end, threadIndex,
          threads);
      fetchUnits<ValueUnits, Keys, ValuePairing>(nextValues, valueVectors, p, sequence, next, end, reversed, threads);
    }
    if (isUsed) {
      if (flashSimdgroupsPerRow > 1u) {
        sumParts(scores, ownParts, lane);
      }
      MNK_UNROLL
      for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
        thread float2& score = scores.of[i / Blocks][i % Blocks];
        score *= state.scoreScale[i / Blocks];
        if (hasBias(IsLatent)) {
          score += state.bias[i / Blocks];
        }
      }
      const bool isCommon = base >= commonBegin && base + Keys <= commonEnd;
      if (changesScores() || !isCommon) {
        // Most tiles do not need this, so it is not kept in registers.
        MNK_UNROLL
        for (ushort r = 0; r < 2 * RowBlocks; ++r) {
          const uint row = min(firstRow + own + r / 2 * 8u + at.column + r % 2, rows - 1u);
          state.row[r / 2][r % 2] = attentionRow(p, sequence, tokens, kvHead, row, slopes);
        }
        maskScores(scores, state, p, sequence, mask, base + keyOfRow(at.row), end, isCommon);
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
      addValues<!IsLatent>(scores, state, ownValues, valueStride, mayHaveSpecials, at, lane);
    }
    base = next;
  }

  const AttentionOutputs out{valueMeans, sinks, into, logSumExp, sums, stats, nullptr, nullptr, nullptr};
  if (flashIsSplit || !kvHasQuantizedValues || kvIsUnrotated) {
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      const float2 rowSum = sumOfColumns(state.rowSum[b]);
      MNK_UNROLL
      for (ushort side = 0; side < 2; ++side) {
        const uint r = own + b * 8u + at.column + side;
        if (hasRows && r < count) {
          const ulong row = rowIndex(p, tokens, kvHead, firstRow + r);
          storeFromMatrices(state, b, side, rowSum[side], p, row, place.x, part, at, out);
        }
      }
    }
    return;
  }
  // The inverse rotation needs whole rows.
  constexpr ushort Chunks = IsLatent ? kLatentChunks : kPrefillChunks;
  constexpr uint ResultRows = (IsLatent ? Keys : 2 * Keys) * sizeof(T) / 4;  // that fit in the memory of the tiles
  const uint stride = headDim + kFlashPrefillRowPadding;
  for (uint first = 0; first < count; first += ResultRows) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups are done with the tile or previous results
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      const float2 rowSum = sumOfColumns(state.rowSum[b]);
      const uint r = own + b * 8u;
      if (hasRows && r >= first && r < first + ResultRows) {
        MNK_UNROLL
        for (ushort side = 0; side < 2; ++side) {
          const uint row = r - first + at.column + side;
          const float unit = unitOf(state.unit[b])[side];
          threadgroup float* result = pool + row * stride + part * Dim + 2u * at.row;
          MNK_UNROLL
          for (ushort i = 0; i < Dim / 16; ++i) {
            *reinterpret_cast<threadgroup float2*>(result + 16 * i) =
                float2(
                    state.result[b][2 * i].thread_elements()[side],
                    state.result[b][2 * i + 1].thread_elements()[side]) *
                unit;
          }
          if (part == 0u && at.row == 0u) {
            rowStats[row] = float2(state.rowMax[b][side], rowSum[side]);
          }
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint r = first + simdgroup; r < min(first + ResultRows, count); r += simdgroups) {
      const uint from = min(lane, p.finish.lanes - 1u) * Chunks;
      MergedRow<Chunks> row;
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        row.x[i] = reinterpret_cast<threadgroup const float4*>(pool + (r - first) * stride)[from + i];
      }
      row.rowMax = rowStats[r - first].x;
      row.rowSum = rowStats[r - first].y;
      finishRow<Chunks>(row, p.finish, rowIndex(p, tokens, kvHead, firstRow + r), lane, out);
    }
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
