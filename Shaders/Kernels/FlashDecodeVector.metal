// Attention of a few rows over a cache, computed in f32. A simdgroup has up to `Rows` rows of one head of the cache and
// reads tiles of keys and values once for all of them; the simdgroups of a threadgroup take turns at the tiles of a
// split. In a simdgroup, `Lanes` neighboring lanes share a vector, so that several vectors are loaded at once. Vectors
// of elements that are shorter than `KeyDim` or `ValueDim` count as padded with zeros.
#include "../Lib/AttentionFinish.h"
#include "../Lib/AttentionRows.h"
#include "../Lib/AttentionTogether.h"
#include "../Lib/CachePieces.h"

// Neighboring lanes that share a vector: so many that each has a multiple of four elements, few enough to hold in
// registers for several rows.
constexpr ushort vectorLanes(ushort headDim) {
  return headDim == 32 || headDim == 80     ? 4
         : headDim == 64 || headDim == 96   ? 8
         : headDim == 256 || headDim == 512 ? 32
                                            : 16;
}
// Vectors of a tile that a lane has a share of.
constexpr ushort vectorSteps(ushort elements, ushort rows) {
  return elements > 20 ? 2 : elements > 8 || rows == 8 ? 4 : 8;
}

template <ushort KeyDim, ushort ValueDim, ushort Rows>
kernel void flashDecodeVector(
    constant FlashDecodeParams& p [[buffer(kFlashDecodeParams)]],
    constant FlashDecodeSequence* sequences [[buffer(kFlashDecodeSequences)]],
    device const uchar* queries [[buffer(kFlashDecodeQueries)]], device const uchar* keys [[buffer(kFlashDecodeKeys)]],
    device const uchar* values [[buffer(kFlashDecodeValues)]],
    device const uchar* keyScales [[buffer(kFlashDecodeKeyScales), function_constant(flashIsCoded)]],
    device const uchar* valueScales [[buffer(kFlashDecodeValueScales), function_constant(flashIsCoded)]],
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
    device atomic_float* splitSums [[buffer(kFlashDecodePartSums), function_constant(flashMergesTogether)]],
    device atomic_float* splitStats [[buffer(kFlashDecodePartStats), function_constant(flashMergesTogether)]],
    device atomic_uint* arrived [[buffer(kFlashDecodeArrived), function_constant(flashMergesTogether)]],
    threadgroup float* pool [[threadgroup_memory(0)]], uint3 place [[threadgroup_position_in_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr ushort Lanes = vectorLanes(KeyDim);
  constexpr ushort Groups = 32 / Lanes;  // vectors loaded at once
  constexpr ushort KeyElements = KeyDim / Lanes;
  constexpr ushort ValueElements = ValueDim / Lanes;
  constexpr ushort Steps = vectorSteps(KeyElements, Rows);
  constexpr ushort Tile = Steps * Groups;
  constexpr ushort Scores = Rows * Steps;                         // of which a lane has a share
  constexpr ushort Own = Scores > Lanes ? Scores / Lanes : 1;     // of which it has the sum in the end
  constexpr ushort Copies = Scores < Lanes ? Lanes / Scores : 1;  // lanes that have the same sum
  constexpr ushort RowLanes = Lanes / Rows;                       // lanes that have sums of one row
  constexpr ushort Chunks = (ValueDim + 127) / 128;

  const uint sequenceIndex = place.z / p.rowGroups;
  constant FlashDecodeSequence& sequence = sequences[sequenceIndex];
  const uint kvHead = place.y;
  const uint rows = p.group * p.rows;
  const uint firstRow = place.z % p.rowGroups * Rows;
  const uint at = lane % Lanes;
  const uint groupIndex = lane / Lanes;

  const ulong ofHead = firstVector(p, sequence, kvHead);
  const CacheVectors keyVectors =
      vectorsFrom(keys, keyScales, ofHead, kvKeyBits, KeyDim, p.keyCodeBytes, p.keyInverseRoot, p.keyScaleFactor);
  const CacheVectors valueVectors = vectorsFrom(
      values, valueScales, ofHead, kvValueBits, ValueDim, p.valueCodeBytes, p.finish.inverseRoot, p.valueScaleFactor);
  threadgroup float* keyLevels = pool;
  threadgroup float* valueLevels = pool;
  if (flashIsCoded) {
    valueLevels = pool + (1u << kvKeyBits);
    const uint index = simdgroup * 32u + lane;
    fillLevels(keyLevels, kvKeyBits, index, simdgroups * 32u);
    fillLevels(valueLevels, kvValueBits, index, simdgroups * 32u);
  }

  float4 query[Rows][KeyElements / 4];
  float4 result[Rows][ValueElements / 4];
  float biases[Rows];
  MNK_UNROLL
  for (ushort r = 0; r < Rows; ++r) {
    const AttentionRow row = attentionRow(p, sequence, sequenceIndex, kvHead, min(firstRow + r, rows - 1u), slopes);
    biases[r] = loadQuery<KeyElements / 4>(
        query[r], p, queries, row, kvHead, keyVectors.headDim, Lanes, lane, p.queryScale, keyMeans, channelScales);
    MNK_UNROLL
    for (ushort i = 0; i < ValueElements / 4; ++i) {
      result[r][i] = float4(0.0f);
    }
  }

  // The scores that this lane will have the sums of: of one row, for steps ownStep to before ownStep + Own.
  const uint ownRow = at / RowLanes;
  const uint ownStep = at % RowLanes / Copies * Own;
  const AttentionRow row = attentionRow(p, sequence, sequenceIndex, kvHead, min(firstRow + ownRow, rows - 1u), slopes);
  float bias = 0.0f;
  if (kvHasKeyMeans && flashIsCoded) {
    MNK_UNROLL
    for (ushort r = 0; r < Rows; ++r) {
      bias = r == ownRow ? biases[r] : bias;
    }
  }

  const uint begin = min(sequence.firstKey + place.x * sequence.splitKeys, sequence.endKey);
  const uint end = min(begin + sequence.splitKeys, sequence.endKey);
  // Between these keys each row sees each: no score need be left out. Rows are in the order of their positions.
  const AttentionRow oldest = attentionRow(p, sequence, sequenceIndex, kvHead, 0, slopes);
  const AttentionRow newest = attentionRow(p, sequence, sequenceIndex, kvHead, rows - 1u, slopes);
  const uint commonBegin = newest.firstKey;
  const uint commonEnd = min(end, oldest.endKey);

  float largest = kNoLargest;
  float sum = 0.0f;
  CachePiece<KeyElements> keyPieces[Steps];
  CachePiece<ValueElements> valuePieces[Steps];
  uint base = begin + simdgroup * Tile;
  if (base < end) {
    MNK_UNROLL
    for (ushort t = 0; t < Steps; ++t) {
      const uint key = min(base + t * Groups + groupIndex, end - 1u);
      loadPiece(keyPieces[t], keyVectors, vectorOfKey(p, sequence, key), at * KeyElements);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // levels are written
  while (base < end) {
    MNK_UNROLL
    for (ushort t = 0; t < Steps; ++t) {
      const uint key = min(base + t * Groups + groupIndex, end - 1u);
      loadPiece(valuePieces[t], valueVectors, vectorOfKey(p, sequence, key), at * ValueElements);
    }

    float scores[Scores];
    MNK_UNROLL
    for (ushort t = 0; t < Steps; ++t) {
      float products[Rows];
      MNK_UNROLL
      for (ushort i = 0; i < KeyElements / 4; ++i) {
        const float4 x = fourOfPiece(keyPieces[t], i, kvKeyBits, keyLevels);
        MNK_UNROLL
        for (ushort r = 0; r < Rows; ++r) {
          const float4 q = query[r][i];
          products[r] = i == 0 ? q.x * x.x : fma(q.x, x.x, products[r]);
          products[r] = fma(q.w, x.w, fma(q.z, x.z, fma(q.y, x.y, products[r])));
        }
      }
      const float scale = flashIsCoded ? scaleOfLevels(keyPieces[t].scale, keyVectors) : 1.0f;
      MNK_UNROLL
      for (ushort r = 0; r < Rows; ++r) {
        scores[r * Steps + t] = flashIsCoded ? products[r] * scale : products[r];
      }
    }
    const uint next = base + simdgroups * Tile;
    if (next < end) {  // on their way while weights and results are computed
      MNK_UNROLL
      for (ushort t = 0; t < Steps; ++t) {
        const uint key = min(next + t * Groups + groupIndex, end - 1u);
        loadPiece(keyPieces[t], keyVectors, vectorOfKey(p, sequence, key), at * KeyElements);
      }
    }
    sumTransposed<Scores, Lanes / 2, 1>(scores, lane);

    const bool isCommon = base >= commonBegin && base + Tile <= commonEnd;
    float top = largest;
    MNK_UNROLL
    for (ushort i = 0; i < Own; ++i) {
      const uint key = base + (ownStep + i) * Groups + groupIndex;
      const bool isSeen = isCommon || (key < end && isSeenBy(p, row, key));
      float score = kNoScore;
      if (isSeen) {
        score = scoreOf(p, sequence, row, key, scores[i] + bias, mask);
      }
      scores[i] = score;
      top = max(top, score);
    }
    top = largestOver(top, 1, RowLanes);
    top = largestOver(top, Lanes, 32);
    if (simd_any(top > largest)) {
      const float fade = fast::exp2(largest - top);
      largest = top;
      sum *= fade;
      MNK_UNROLL
      for (ushort r = 0; r < Rows; ++r) {
        const float ofRow = simd_shuffle(fade, ushort(r * RowLanes));
        MNK_UNROLL
        for (ushort i = 0; i < ValueElements / 4; ++i) {
          result[r][i] *= ofRow;
        }
      }
    }
    MNK_UNROLL
    for (ushort i = 0; i < Own; ++i) {
      scores[i] = fast::exp2(scores[i] - largest);
      sum += scores[i];
    }

    const bool mayBeZero = flashHasMask || !isCommon;
    MNK_UNROLL
    for (ushort t = 0; t < Steps; ++t) {
      float weights[Rows];
      bool counts[Rows];
      const float scale = flashIsCoded ? scaleOfLevels(valuePieces[t].scale, valueVectors) : 1.0f;
      MNK_UNROLL
      for (ushort r = 0; r < Rows; ++r) {
        const float weight =
            simd_shuffle(scores[t % Own], ushort(groupIndex * Lanes + r * RowLanes + t / Own * Copies));
        counts[r] = !mayBeZero || weight != 0.0f;  // what counts for nothing may be no number
        weights[r] = flashIsCoded ? weight * scale : weight;
      }
      MNK_UNROLL
      for (ushort i = 0; i < ValueElements / 4; ++i) {
        const float4 x = fourOfPiece(valuePieces[t], i, kvValueBits, valueLevels);
        MNK_UNROLL
        for (ushort r = 0; r < Rows; ++r) {
          // Copies, because a choice between places in an array would move it out of registers.
          const float4 before = result[r][i];
          const float4 after = fma(float4(weights[r]), x, before);
          result[r][i] = counts[r] ? after : before;
        }
      }
    }
    base = next;
  }
  sum = sumOver(sum, Copies, RowLanes);
  sum = sumOver(sum, Lanes, 32);

  threadgroup_barrier(mem_flags::mem_threadgroup);  // everybody is done with the levels
  float flat[Rows * ValueElements];
  MNK_UNROLL
  for (ushort i = 0; i < Rows * ValueElements / 4; ++i) {
    const float4 x = result[i / (ValueElements / 4)][i % (ValueElements / 4)];
    flat[4 * i] = x.x;
    flat[4 * i + 1] = x.y;
    flat[4 * i + 2] = x.z;
    flat[4 * i + 3] = x.w;
  }
  sumTransposed<Rows * ValueElements, 16, Lanes>(flat, lane);
  constexpr ushort Parts = transposedParts(Rows * ValueElements, Groups);
  constexpr ushort Kept = Rows * ValueElements / Parts;
  threadgroup float2* partStats = reinterpret_cast<threadgroup float2*>(pool);
  threadgroup float* partSums = pool + firstPartSum(simdgroups * Rows);
  if (groupIndex % (Groups / Parts) == 0u) {
    MNK_UNROLL
    for (ushort i = 0; i < Kept; ++i) {
      const uint index = groupIndex / (Groups / Parts) * Kept + i;
      const uint r = index / ValueElements;
      partSums[(simdgroup * Rows + r) * ValueDim + at * ValueElements + index % ValueElements] = flat[i];
    }
  }
  if (lane < Lanes && at % RowLanes == 0u) {
    partStats[simdgroup * Rows + ownRow] = float2(largest, sum);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (uint r = simdgroup; r < Rows; r += simdgroups) {
    if (firstRow + r < rows) {
      const AttentionRow finished = attentionRow(p, sequence, sequenceIndex, kvHead, firstRow + r, slopes);
      finishPart<Chunks>(
          mergedInThreadgroup<Chunks>(
              partSums + r * ValueDim, partStats + r, simdgroups, Rows, ValueDim, lane * (4u * Chunks)),
          p, finished.index, place.x, lane, valueMeans, sinks, into, logSumExp, sums, stats, splitSums, splitStats);
    }
  }
#if MNK_HAS_DEVICE_FENCES
  if (flashMergesTogether) {
    finishTogether<Chunks, Rows>(
        p, sequenceIndex, place, firstRow, pool, simdgroups, simdgroup, lane, valueMeans, sinks, into, logSumExp, sums,
        stats, splitSums, splitStats, arrived);
  }
#endif
}

#define ROW(keyDim, valueDim, rows) \
  instantiate_kernel("flashDecodeVector_" #keyDim "_" #valueDim "_" #rows, flashDecodeVector, keyDim, valueDim, rows)
MNK_FLASH_VECTOR_INSTANCES(ROW)
#undef ROW
