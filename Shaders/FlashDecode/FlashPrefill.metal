// Attention of many rows over a cache with 8x8 matrices and f32 accumulation. A threadgroup computes a tile of rows of
// one head of the cache: all query heads of some tokens. It loads each tile of `Keys` keys and values once, if any of
// its rows sees it. PrefillTile.h has the phases of a tile. Each simdgroup computes `8 * RowBlocks` rows, or `Dim`
// elements of them if `flashSimdgroupsPerRow` simdgroups share the rows.
#include "AttentionFinish.h"
#include "AttentionRows.h"
#include "PrefillTile.h"

// Before and after the matrix phase, a lane holds eight elements of a row of up to 256, and sixteen of a latent part.
constant constexpr ushort kPrefillChunks = 2;
constant constexpr ushort kLatentChunks = 4;

// Applies the Hadamard rotation of a quantized cache to a query, normalizes it if T is half, and stores it. For a
// latent cache, the first `latentDim` elements are rotated like values, and the rest like keys.
template <typename T, bool IsLatent>
MNK_SHARED void prepareRow(
    threadgroup T* into, threadgroup float2* stat, device const uchar* queries, ulong start,
    constant FlashDecodeParams& p, uint kvHead, uint latentDim, uint headDim, uint lane, device const float* keyMeans,
    device const float* channelScales, device const float* valueMeans) {
  constexpr ushort Chunks = kPrefillChunks;
  constexpr ushort Latent = IsLatent ? kLatentChunks : 0;
  const uint lanes = lanesOf(headDim, Chunks);
  const bool isHalf = sizeof(T) == 2;
  const float scale = isHalf ? 1.0f : p.queryScale;
  float4 x[Latent + Chunks];
  thread float4* rest = x + Latent;
  loadQuery<Chunks>(rest, queries, start + latentDim, headDim, lanes, lane);
  float bias = rotateQuery<Chunks>(rest, p, kvHead, headDim, lanes, lane, scale, keyMeans, channelScales);
  if (IsLatent) {
    constexpr ushort Own = IsLatent ? kLatentChunks : Chunks;
    const uint latentLanes = latentDim / (4u * Own);
    loadQuery<Own>(x, queries, start, latentDim, latentLanes, lane);
    bias += rotateLatent<Own>(x, p, kvHead, latentDim, latentLanes, lane, scale, valueMeans);
  }
  float2 found = float2(bias, 1.0f);
  if (isHalf) {
    found = float2(bias * p.queryScale, normalizeQuery<Latent + Chunks>(x) * p.queryScale);
  }
  MNK_UNROLL
  for (ushort i = 0; i < Latent; ++i) {
    storeTileFour(into + (lane * Latent + i) * 4u, x[i]);
  }
  if (lane * (4u * kPrefillChunks) < headDim) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      storeTileFour(into + latentDim + (lane * Chunks + i) * 4u, rest[i]);
    }
  }
  if (lane == 0u) {
    *stat = found;
  }
}

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
  constexpr uint Vectors = IsLatent ? Keys : 2 * Keys;  // queries that fit in the memory of the key and value tiles
  constexpr uint ResultRows = Vectors * sizeof(T) / 4;  // result rows that fit in the same memory
  constexpr ushort Chunks = IsLatent ? kLatentChunks : kPrefillChunks;
  const uint headDim = Dim * flashSimdgroupsPerRow;
  const uint stride = headDim + kFlashPrefillPadding;
  const uint keyDim = IsLatent ? Extra * flashSimdgroupsPerRow : headDim;
  const uint keyStride = keyDim + kFlashPrefillPadding;
  const uint latentDim = IsLatent ? headDim : 0u;
  const uint queryStride = latentDim + keyStride;
  const uint threadIndex = simdgroup * 32u + lane;
  const MatrixLane at = matrixLane(lane);

  threadgroup T* tile = reinterpret_cast<threadgroup T*>(pool);
  threadgroup T* keyTile = tile;
  threadgroup T* valueTile = tile + Keys * keyStride;
  threadgroup float2* rowStats = reinterpret_cast<threadgroup float2*>(valueTile + Keys * stride);
  threadgroup float* tileScales = reinterpret_cast<threadgroup float*>(rowStats);
  threadgroup uint* specials = reinterpret_cast<threadgroup uint*>(rowStats + 2 * Keys);
  threadgroup float* keyCodebook = reinterpret_cast<threadgroup float*>(specials + kFlashPrefillMaxSimdgroups);
  threadgroup float* valueCodebook = kvHasQuantizedKeys ? keyCodebook + (1u << kvKeyBits) : keyCodebook;
  threadgroup float2* parts =
      reinterpret_cast<threadgroup float2*>(kvHasQuantizedValues ? valueCodebook + (1u << kvValueBits) : valueCodebook);

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
  const uint splitBegin = min(sequence.firstKey + place.x * sequence.splitKeys, sequence.endKey);
  const uint splitEnd = min(splitBegin + sequence.splitKeys, sequence.endKey);
  if (kvHasQuantizedKeys) {
    fillCodebook(keyCodebook, kvKeyBits, threadIndex, simdgroups * 32u);
  }
  if (kvHasQuantizedValues) {
    fillCodebook(valueCodebook, kvValueBits, threadIndex, simdgroups * 32u);
  }

  threadgroup float* valueScaleTile = tileScales + (1u + part * Dim / kScaledElements) * Keys;
  const AttentionOutputs out{valueMeans, sinks, into, logSumExp, sums, stats, nullptr, nullptr, nullptr};
  const uint count = min(rowGroups * OwnRows, tileEnd - firstRow);
  const uint own = rowGroup * OwnRows;  // first of this simdgroup's rows, relative to firstRow
  const bool hasRows = rowGroup < rowGroups && own < count;

  PrefillRows<T, Dim, Extra, RowBlocks> state;
  startPrefill(state);
  for (uint first = 0; first < count; first += Vectors) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups are done with the previous queries
    for (uint r = first + simdgroup; r < min(first + Vectors, rowGroups * OwnRows); r += simdgroups) {
      const ulong start = queryStart(p, tokens, kvHead, min(firstRow + r, rows - 1u));
      prepareRow<T, IsLatent>(
          tile + (r - first) * queryStride, rowStats + (r - first), queries, start, p, kvHead, latentDim, keyDim, lane,
          keyMeans, channelScales, valueMeans);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (hasRows && own >= first && own < first + Vectors) {
      threadgroup const T* query = tile + (own - first) * queryStride;
      readPrepared(
          state, query + part * Dim, query + latentDim + part * Extra, rowStats + (own - first), queryStride, at);
    }
  }
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    const uint row = min(firstRow + own + b * 8u + at.row, rows - 1u);
    state.row[b] = attentionRow(p, sequence, tokens, kvHead, row, slopes);
  }

  // Rows are ordered by position: the first row sees the oldest keys and the last row the newest.
  const uint windowBegin = attentionRow(p, sequence, tokens, kvHead, firstRow, slopes).firstKey;
  const uint lastEnd = attentionRow(p, sequence, tokens, kvHead, firstRow + count - 1u, slopes).endKey;
  const uint begin = flashSeesPinned ? splitBegin : max(splitBegin, windowBegin);
  const uint end = min(splitEnd, lastEnd);

  uint base = begin;
  while (base < end) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups are done with the previous tile or queries
    loadVectors<T, Keys>(
        keyTile, tileScales, keyVectors, p, sequence, keyCodebook, base, end, threadIndex, simdgroups * 32u);
    const bool isFinite = loadVectors<T, Keys>(
        valueTile, tileScales + Keys, valueVectors, p, sequence, valueCodebook, base, end, threadIndex,
        simdgroups * 32u);
    const bool hasSpecial = simd_any(!isFinite);
    if (!kvHasQuantizedValues && lane == 0u) {
      specials[simdgroup] = hasSpecial ? 1u : 0u;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const bool isUsed = hasRows && seesAny(state, base, base + Keys);
    PrefillScores<RowBlocks, Blocks> scores;
    if (isUsed) {
      if (IsLatent) {
        PrefillScores<RowBlocks, Blocks> rest;
        multiplyKeys<0, Dim>(scores, state, valueTile + part * Dim, stride, at);
        multiplyKeys<Dim, Extra>(rest, state, keyTile + part * Extra, keyStride, at);
        addProducts(scores, rest, valueScaleTile, tileScales, at);
      } else {
        multiplyKeys<0, Dim>(scores, state, keyTile + part * Dim, keyStride, at);
      }
    }
    if (flashSimdgroupsPerRow > 1u) {
      constexpr uint Stored = RowBlocks * Blocks * 32;
      if (isUsed) {
        MNK_UNROLL
        for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
          parts[simdgroup * Stored + i * 32u + lane] = scores.of[i / Blocks][i % Blocks];
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (isUsed) {
        sumParts(scores, parts + rowGroup * flashSimdgroupsPerRow * Stored, lane);
      }
    }
    if (isUsed) {
      const bool isCommon = base + Keys <= end && seesAll(state, base, base + Keys);
      scoreProducts(scores, state, p, sequence, tileScales, mask, base, end, isCommon, at);
      updatePrefill(scores, state, valueScaleTile, at);
      const bool mayHaveSpecials = !kvHasQuantizedValues && (flashHasMask || !isCommon);
      if (mayHaveSpecials && simd_any(lane < simdgroups && specials[min(lane, simdgroups - 1u)] != 0u)) {
        accumulateUnmaskedValues(scores, state, valueTile + part * Dim, stride, at, lane);
      } else {
        multiplyValues(scores, state, valueTile + part * Dim, stride, at);
      }
    }
    base += Keys;
    if (flashSeesPinned && base >= p.pinned) {
      base = max(base, windowBegin);
    }
  }

  threadgroup float* results = pool;
  for (uint first = 0; first < count; first += ResultRows) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups are done with the tile or previous results
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      const float rowSum = sumOfRow(state.rowSum[b]);
      const uint r = own + b * 8u;
      if (hasRows && r >= first && r < first + ResultRows) {
        const float unit = as_type<float>(state.unit[b] << 23);
        threadgroup float* row = results + (r - first + at.row) * stride + part * Dim + at.column;
        MNK_UNROLL
        for (ushort i = 0; i < Dim / 8; ++i) {
          *reinterpret_cast<threadgroup float2*>(row + 8 * i) =
              float2(state.result[b][i].thread_elements()[0], state.result[b][i].thread_elements()[1]) * unit;
        }
        if (part == 0u && at.column == 0u) {
          rowStats[r - first + at.row] = float2(state.rowMax[b], rowSum);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint r = first + simdgroup; r < min(first + ResultRows, count); r += simdgroups) {
      const uint from = min(lane, p.finish.lanes - 1u) * Chunks;
      MergedRow<Chunks> row;
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        row.x[i] = reinterpret_cast<threadgroup const float4*>(results + (r - first) * stride)[from + i];
      }
      row.rowMax = rowStats[r - first].x;
      row.rowSum = rowStats[r - first].y;
      finishPart<Chunks>(row, p, rowIndex(p, tokens, kvHead, firstRow + r), place.x, lane, out);
    }
  }
}

#define ROW(type, dim, rowBlocks, keys) \
  instantiate_kernel("flashPrefill_" #type "_" #dim, flashPrefill, type, dim, 0, rowBlocks, keys)
MNK_FLASH_PREFILL_INSTANCES(ROW)
#undef ROW
#define ROW(type, dim, extra, rowBlocks, keys) \
  instantiate_kernel("flashPrefill_latent_" #type, flashPrefill, type, dim, extra, rowBlocks, keys)
MNK_FLASH_LATENT_PREFILL_INSTANCES(ROW)
#undef ROW
