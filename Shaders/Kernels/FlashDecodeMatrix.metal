// Attention of up to eight rows over a cache with 8x8 matrices of halves, whose products are summed in f32. Everything
// is transposed, so that nothing but the largest score and the sum of a row crosses lanes:
//   scores  [key][row]  = keys [key][dim] * queries [dim][row]
//   results [dim][row] += values [dim][key] * weights [key][row]     weights are what becomes of the scores, in place
// Scales of codes act on scores and on weights, so that what is multiplied are levels.
#include "../Lib/AttentionFinish.h"
#include "../Lib/AttentionRows.h"
#include "../Lib/AttentionTogether.h"
#include "../Lib/MatrixPieces.h"

pipeline_constant(bool, flashHasTokens, kFlashDecodeHasTokens);

// The exponent of a number as it is stored; 0 where it is none.
inline uint finiteExponent(float x) {
  const uint exponent = (as_type<uint>(x) >> 23) & 255u;
  return exponent < 253u ? exponent : 0u;
}

// Keys of a tile, or its values with their scales by rows of weights. From `end` on it is the last key again: what is
// made of it does not count, and no branch keeps a load from an earlier place.
template <ushort Dim, ushort Blocks>
inline void loadKeys(
    thread CachePiece<Dim / 4>* pieces, constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence,
    CacheVectors from, MatrixLane at, uint base, uint end) {
  MNK_UNROLL
  for (ushort n = 0; n < Blocks; ++n) {
    const uint key = min(base + n * 8u + keyOfBlock(at.row), end - 1u);
    loadShare<Dim, 4>(pieces[n], from, vectorOfKey(p, sequence, key), at.column / 2u);
  }
}
template <ushort Dim, ushort Blocks>
inline void loadValues(
    thread CachePiece<Dim / 8>* pieces, thread uint* scales, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, CacheVectors from, MatrixLane at, uint base, uint end) {
  MNK_UNROLL
  for (ushort n = 0; n < 2 * Blocks; ++n) {
    const uint key = min(base + n / 2 * 8u + keyOfBlock(at.column + n % 2), end - 1u);
    loadShare<Dim, 8>(pieces[n], from, vectorOfKey(p, sequence, key), at.row);
  }
  if (flashIsCoded) {
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      const uint key = min(base + n * 8u + keyOfBlock(at.row), end - 1u);
      scales[n] = storedScale(from, vectorOfKey(p, sequence, key), 0);
    }
  }
}

template <ushort Dim>
kernel void flashDecodeMatrix(
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
  constexpr ushort Rows = kFlashDecodeMatrixRows;
  constexpr ushort Blocks = Dim > 128 ? 1 : 2;  // of eight keys, in a tile
  constexpr ushort Tile = 8 * Blocks;
  constexpr ushort Matrices = Dim / 8;
  constexpr ushort Chunks = (Dim + 127) / 128;
  constexpr ushort QueryLanes = Dim / (4 * Chunks);

  const uint sequenceIndex = place.z / p.rowGroups;
  constant FlashDecodeSequence& sequence = sequences[sequenceIndex];
  const uint kvHead = place.y;
  const uint rows = p.group * p.rows;
  const uint firstRow = place.z % p.rowGroups * Rows;
  const MatrixLane at = matrixLane(lane);

  const ulong ofHead = firstVector(p, sequence, kvHead);
  const CacheVectors keyVectors =
      vectorsFrom(keys, keyScales, ofHead, kvKeyBits, Dim, p.keyCodeBytes, p.keyInverseRoot, p.keyScaleFactor);
  const CacheVectors valueVectors = vectorsFrom(
      values, valueScales, ofHead, kvValueBits, Dim, p.valueCodeBytes, p.finish.inverseRoot, p.valueScaleFactor);

  // Tables of levels, then queries and what the keys' mean adds to their products.
  threadgroup half2* keyTable = reinterpret_cast<threadgroup half2*>(pool);
  threadgroup half2* valueTable = keyTable;
  threadgroup float* sharedQueries = pool + kFlashDecodeMatrixTableBytes / 4;
  threadgroup float* sharedBiases = sharedQueries + Rows * Dim;
  if (flashIsCoded) {
    const uint index = simdgroup * 32u + lane;
    fillTable(keyTable, kvKeyBits, index, simdgroups * 32u);
    if (kvKeyBits != kvValueBits) {
      valueTable = keyTable + kFlashDecodeMatrixTableBytes / 8;
      fillTable(valueTable, kvValueBits, index, simdgroups * 32u);
    }
  }
  for (uint r = simdgroup; r < Rows; r += simdgroups) {
    const AttentionRow row = attentionRow(p, sequence, sequenceIndex, kvHead, min(firstRow + r, rows - 1u), slopes);
    float4 x[Chunks];
    const float bias =
        loadQuery<Chunks>(x, p, queries, row, kvHead, Dim, QueryLanes, lane, 1.0f, keyMeans, channelScales);
    if (lane < QueryLanes) {
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        reinterpret_cast<threadgroup float4*>(sharedQueries + r * Dim)[lane * Chunks + i] = x[i];
      }
    }
    if (lane == 0u) {
      sharedBiases[r] = bias;
    }
  }

  // The two rows of this lane's columns.
  const AttentionRow row0 =
      attentionRow(p, sequence, sequenceIndex, kvHead, min(firstRow + at.column, rows - 1u), slopes);
  const AttentionRow row1 =
      attentionRow(p, sequence, sequenceIndex, kvHead, min(firstRow + at.column + 1u, rows - 1u), slopes);
  const uint begin = min(sequence.firstKey + place.x * sequence.splitKeys, sequence.endKey);
  const uint end = min(begin + sequence.splitKeys, sequence.endKey);
  // Between these keys each row sees each. Rows are in the order of their positions.
  const AttentionRow oldest = attentionRow(p, sequence, sequenceIndex, kvHead, 0, slopes);
  const AttentionRow newest = attentionRow(p, sequence, sequenceIndex, kvHead, rows - 1u, slopes);
  const uint commonBegin = newest.firstKey;
  const uint commonEnd = min(end, oldest.endKey);

  CachePiece<Dim / 4> keyPieces[Blocks];
  CachePiece<Dim / 8> valuePieces[2 * Blocks];
  uint storedScales[Blocks];
  uint base = begin + simdgroup * Tile;
  if (base < end) {
    loadKeys<Dim, Blocks>(keyPieces, p, sequence, keyVectors, at, base, end);
    loadValues<Dim, Blocks>(valuePieces, storedScales, p, sequence, valueVectors, at, base, end);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // tables and queries are written

  simdgroup_half8x8 query[Matrices];
  simdgroup_float8x8 result[Matrices];
  MNK_UNROLL
  for (ushort i = 0; i < Matrices; ++i) {
    const uint element = sharedElement<Dim, 4>(at.row / 2u, 2u * i + at.row % 2u);
    query[i] = matrixOf(
        half2(half(sharedQueries[at.column * Dim + element]), half(sharedQueries[(at.column + 1u) * Dim + element])));
    result[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  float2 bias = float2(0.0f);
  if (kvHasKeyMeans && flashIsCoded) {
    bias = float2(sharedBiases[at.column], sharedBiases[at.column + 1u]) * p.queryScale;
  }
  threadgroup const half2* ownKeys = keyTable + copyOfLane(kvKeyBits, lane);
  threadgroup const half2* ownValues = valueTable + copyOfLane(kvValueBits, lane);

  float2 largest = float2(kNoLargest);
  float2 sum = float2(0.0f);
  uint unit =
      1;  // exponent of the largest scale of values yet, which results count in: weights times scales are halves
  while (base < end) {
    const uint next = base + simdgroups * Tile;
    // Two chains of sums for each block hide the latency of products.
    simdgroup_float8x8 even[Blocks];
    simdgroup_float8x8 odd[Blocks];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      even[n] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      odd[n] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    MNK_UNROLL
    for (ushort i = 0; i < Matrices; i = ushort(i + 2)) {
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        simdgroup_half8x8 key = matrixOf(keyPair(keyPieces[n], i, kvKeyBits, ownKeys));
        simdgroup_multiply_accumulate(even[n], key, query[i], even[n]);
      }
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        simdgroup_half8x8 key = matrixOf(keyPair(keyPieces[n], i + 1u, kvKeyBits, ownKeys));
        simdgroup_multiply_accumulate(odd[n], key, query[i + 1], odd[n]);
      }
    }
    float2 scores[Blocks];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      const float factor = flashIsCoded ? scaleOfLevels(keyPieces[n].scale, keyVectors) * p.queryScale : p.queryScale;
      scores[n] = float2(
                      even[n].thread_elements()[0] + odd[n].thread_elements()[0],
                      even[n].thread_elements()[1] + odd[n].thread_elements()[1]) *
                      factor +
                  bias;
    }
    loadKeys<Dim, Blocks>(keyPieces, p, sequence, keyVectors, at, next, end);  // on their way for the rest of this tile
    const bool isCommon = base >= commonBegin && base + Tile <= commonEnd;
    if (flashHasSoftcap || flashHasSlopes || flashHasMask || !isCommon) {
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        const uint key = base + n * 8u + keyOfBlock(at.row);
        const bool isSeen0 = isCommon || (key < end && isSeenBy(p, row0, key));
        const bool isSeen1 = isCommon || (key < end && isSeenBy(p, row1, key));
        const float2 score = scores[n];
        scores[n] = float2(kNoScore);
        if (isSeen0) {
          scores[n].x = scoreOf(p, sequence, row0, key, score.x, mask);
        }
        if (isSeen1) {
          scores[n].y = scoreOf(p, sequence, row1, key, score.y, mask);
        }
      }
    }

    float2 top = largest;
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      top = max(top, scores[n]);
    }
    top = largestOfColumns(top);
    if (simd_any(top.x > largest.x || top.y > largest.y)) {
      const float2 fade = float2(fast::exp2(largest.x - top.x), fast::exp2(largest.y - top.y));
      largest = top;
      sum *= fade;
      MNK_UNROLL
      for (ushort i = 0; i < Matrices; ++i) {
        result[i].thread_elements()[0] *= fade.x;
        result[i].thread_elements()[1] *= fade.y;
      }
    }
    float2 scaled[Blocks];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      const float scale = flashIsCoded ? scaleOfLevels(storedScales[n], valueVectors) : 1.0f;
      const float2 weight = float2(fast::exp2(scores[n].x - largest.x), fast::exp2(scores[n].y - largest.y));
      sum += weight;
      // A scale of a key that does not count may be no number.
      scaled[n] = float2(weight.x == 0.0f ? 0.0f : weight.x * scale, weight.y == 0.0f ? 0.0f : weight.y * scale);
    }
    float rescale = 1.0f;
    if (flashIsCoded) {
      uint exponent = unit;
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        exponent = max(exponent, max(finiteExponent(scaled[n].x), finiteExponent(scaled[n].y)));
      }
      if (simd_any(exponent > unit)) {
        exponent = largestOverLanes(exponent, 32);
        const uint grown = exponent - unit;
        const float fade = as_type<float>(grown < 126u ? (127u - grown) << 23 : 0u);
        MNK_UNROLL
        for (ushort i = 0; i < Matrices; ++i) {
          result[i].thread_elements()[0] *= fade;
          result[i].thread_elements()[1] *= fade;
        }
        unit = exponent;
      }
      rescale = as_type<float>((254u - unit) << 23);
    }
    half2 weights[Blocks];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      weights[n] = half2(half(scaled[n].x * rescale), half(scaled[n].y * rescale));
    }
    if (flashIsCoded || !flashHasTokens || isCommon) {
      MNK_UNROLL
      for (ushort i = 0; i < Matrices; i = ushort(i + 2)) {
        MNK_UNROLL
        for (ushort n = 0; n < Blocks; ++n) {
          simdgroup_half8x8 weight = matrixOf(weights[n]);
          simdgroup_half8x8 a =
              matrixOf(valuePair(valuePieces[2 * n], valuePieces[2 * n + 1], i, kvValueBits, ownValues));
          simdgroup_half8x8 b =
              matrixOf(valuePair(valuePieces[2 * n], valuePieces[2 * n + 1], i + 1u, kvValueBits, ownValues));
          simdgroup_multiply_accumulate(result[i], a, weight, result[i]);
          simdgroup_multiply_accumulate(result[i + 1], b, weight, result[i + 1]);
        }
      }
    } else {
      // A value that one token sees and another does not may be no number, and nothing times that is no number either:
      // tokens are computed one after the other, and each takes its own columns.
      for (uint token = 0; token < p.rows; ++token) {
        const bool isOwn0 = min(firstRow + at.column, rows - 1u) / p.group == token;
        const bool isOwn1 = min(firstRow + at.column + 1u, rows - 1u) / p.group == token;
        const AttentionRow row = attentionRow(p, sequence, sequenceIndex, kvHead, token * p.group, slopes);
        MNK_UNROLL
        for (ushort i = 0; i < Matrices; ++i) {
          simdgroup_float8x8 more = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
          MNK_UNROLL
          for (ushort n = 0; n < Blocks; ++n) {
            const uint key0 = base + n * 8u + keyOfBlock(at.column);
            const uint key1 = base + n * 8u + keyOfBlock(at.column + 1u);
            const half2 pair = valuePair(valuePieces[2 * n], valuePieces[2 * n + 1], i, kvValueBits, ownValues);
            const half2 seen =
                half2(isSeenBy(p, row, key0) ? pair.x : half(0.0f), isSeenBy(p, row, key1) ? pair.y : half(0.0f));
            simdgroup_half8x8 value = matrixOf(seen);
            simdgroup_half8x8 weight = matrixOf(weights[n]);
            simdgroup_multiply_accumulate(more, value, weight, more);
          }
          result[i].thread_elements()[0] += isOwn0 ? more.thread_elements()[0] : 0.0f;
          result[i].thread_elements()[1] += isOwn1 ? more.thread_elements()[1] : 0.0f;
        }
      }
    }
    loadValues<Dim, Blocks>(valuePieces, storedScales, p, sequence, valueVectors, at, next, end);  // during scores
    base = next;
  }
  sum = sumOfColumns(sum);
  const float unscale = flashIsCoded ? as_type<float>(unit << 23) : 1.0f;

  threadgroup_barrier(mem_flags::mem_threadgroup);  // everybody is done with the tables
  // Columns that pad a matrix have no part, so that memory holds those of more simdgroups.
  const uint partRows = min(uint(Rows), rows);
  threadgroup float2* partStats = reinterpret_cast<threadgroup float2*>(pool);
  threadgroup float* partSums = pool + firstPartSum(simdgroups * partRows);
  MNK_UNROLL
  for (ushort side = 0; side < 2; ++side) {
    if (at.column + side < partRows) {
      const uint part = simdgroup * partRows + at.column + side;
      MNK_UNROLL
      for (ushort i = 0; i < Matrices; ++i) {
        partSums[part * Dim + sharedElement<Dim, 8>(at.row, i)] = result[i].thread_elements()[side] * unscale;
      }
      if (at.row == 0u) {
        partStats[part] = side == 0 ? float2(largest.x, sum.x) : float2(largest.y, sum.y);
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint r = simdgroup; r < partRows; r += simdgroups) {
    if (firstRow + r < rows) {
      const AttentionRow row = attentionRow(p, sequence, sequenceIndex, kvHead, firstRow + r, slopes);
      const MergedRow<Chunks> merged = mergedInThreadgroup<Chunks>(
          partSums + r * Dim, partStats + r, simdgroups, partRows, Dim, lane * (4u * Chunks));
      finishPart<Chunks>(
          merged, p, row.index, place.x, lane, valueMeans, sinks, into, logSumExp, sums, stats, splitSums, splitStats);
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

#define ROW(dim) instantiate_kernel("flashDecodeMatrix_" #dim, flashDecodeMatrix, dim)
MNK_FLASH_MATRIX_INSTANCES(ROW)
#undef ROW
