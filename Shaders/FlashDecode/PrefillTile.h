// The phases of a tile of keys and values in the prefill kernel: load, score, softmax, values. A tile is in threadgroup
// memory, as elements of type T (f16 or f32). All simdgroups load it together, and each uses it for its own rows:
//   scores  [row][key]  = queries [row][dim] * keys [dim][key]
//   results [row][dim] += probs [row][key] * values [key][dim]     probs replace scores, in place
// Scales of quantized vectors are applied to scores and probs, so that tiles hold codebook entries.
// `flashSimdgroupsPerRow` simdgroups share a row of more than 128 elements: each has a part of its query and of its
// result. In a latent cache, a key is the value followed by `Extra` elements per simdgroup, and the tile of values also
// serves as keys.
#pragma once
#include "MatrixPieces.h"

pipeline_constant(uint, flashSimdgroupsPerRow, kFlashDecodeSimdgroupsPerRow);

template <typename T>
inline simdgroup_matrix<T, 8, 8> matrixOfTwo(T x, T y) {
  simdgroup_matrix<T, 8, 8> matrix;
  matrix.thread_elements()[0] = x;
  matrix.thread_elements()[1] = y;
  return matrix;
}

// Reductions over the lanes that hold the same row of a matrix.
inline ushort secondColumnStep() {
  return ushort(flashHasRowMajorMatrices ? 2 : 8);
}
inline float maxOfRow(float x) {
  x = max(x, simd_shuffle_xor(x, ushort(1)));
  return max(x, simd_shuffle_xor(x, secondColumnStep()));
}
inline uint maxOfRow(uint x) {
  x = max(x, simd_shuffle_xor(x, ushort(1)));
  return max(x, simd_shuffle_xor(x, secondColumnStep()));
}
inline float sumOfRow(float x) {
  x += simd_shuffle_xor(x, ushort(1));
  return x + simd_shuffle_xor(x, secondColumnStep());
}
// The lane that holds column `column` of the matrix row that `lane` holds a part of.
inline ushort laneOfColumn(uint lane, uint column) {
  return ushort(
      flashHasRowMajorMatrices ? (lane & ~3u) | (column >> 1)
                               : (lane & ~9u) | ((column >> 1) & 1u) | ((column >> 2) << 3));
}

inline bool isFiniteBits(float x) {
  return (as_type<uint>(x) & 0x7f800000u) != 0x7f800000u;
}
inline void storeTileFour(threadgroup half* into, float4 x) {
  *reinterpret_cast<threadgroup half4*>(into) = half4(half(x.x), half(x.y), half(x.z), half(x.w));
}
inline void storeTileFour(threadgroup float* into, float4 x) {
  *reinterpret_cast<threadgroup float4*>(into) = x;
}

// Elements of a vector that share a scale.
constant constexpr uint kScaledElements = 256;

// Loads keys or values [base, end) and, if they are quantized, their scales, `Keys` for each block of kScaledElements.
// The rest of the tile is zero-filled. Returns whether all elements that this thread loaded are finite.
template <typename T, ushort Keys>
MNK_SHARED bool loadVectors(
    threadgroup T* tile, threadgroup float* scales, CacheVectors from, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, threadgroup const float* levels, uint base, uint end, uint index,
    uint threads) {
  constexpr ushort Elements = 8;
  const uint stride = from.headDim + kFlashPrefillPadding;
  const uint pieces = from.headDim / Elements;
  bool isFinite = true;
  for (uint i = index; i < Keys * pieces; i += threads) {
    const uint key = i / pieces;
    const uint first = (i - key * pieces) * Elements;
    CachePiece<Elements> piece = {};
    if (base + key < end) {
      loadPiece(piece, from, vectorOfKey(p, sequence, base + key), first);
    }
    MNK_UNROLL
    for (ushort chunk = 0; chunk < Elements / 4; ++chunk) {
      const floats<4> four = floatsOfPiece<4>(piece, chunk, from.bits, levels);
      const float4 x = float4(four[0], four[1], four[2], four[3]);
      isFinite = isFinite && isFiniteBits(x.x) && isFiniteBits(x.y) && isFiniteBits(x.z) && isFiniteBits(x.w);
      storeTileFour(tile + key * stride + first + 4u * chunk, x);
    }
    if (from.bits != 0u && first % kScaledElements == 0u) {
      scales[first / kScaledElements * Keys + key] = base + key < end ? codebookScale(piece.scale, from) : 0.0f;
    }
  }
  return isFinite;
}

// The state of a simdgroup for `8 * RowBlocks` rows: `Dim` elements of queries and results, `Extra` more elements of
// queries, and the running softmax. A lane has one row of each block of eight.
template <typename T, ushort Dim, ushort Extra, ushort RowBlocks>
struct PrefillRows {
  AttentionRow row[RowBlocks];
  simdgroup_matrix<T, 8, 8> query[RowBlocks][(Dim + Extra) / 8];
  float scoreScale[RowBlocks];  // of products with these queries
  float bias[RowBlocks];        // added to scores for the keys' mean
  simdgroup_float8x8 result[RowBlocks][Dim / 8];
  float rowMax[RowBlocks];
  float rowSum[RowBlocks];
  // Probs times value scales may have to fit in halves. Results of a quantized cache are therefore scaled by a power of
  // two: the exponent of the largest such product so far.
  uint unit[RowBlocks];  // its exponent
};

template <ushort RowBlocks, ushort Blocks>
struct PrefillScores {
  float2 of[RowBlocks][Blocks];
};

template <typename T, ushort Dim, ushort Extra, ushort RowBlocks>
inline void startPrefill(thread PrefillRows<T, Dim, Extra, RowBlocks>& rows) {
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    rows.rowMax[b] = kInitialRowMax;
    rows.rowSum[b] = 0.0f;
    rows.unit[b] = kvHasQuantizedValues ? 1u : 127u;
    MNK_UNROLL
    for (ushort i = 0; i < Dim / 8; ++i) {
      rows.result[b][i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }
}

// Even elements of a group of sixteen are in one matrix and odd ones in the next, so that a lane loads neighboring
// elements of a key. `query` and `extra` point to the two parts of the first block of queries, `stats` to the stats
// that prepareRow stored.
template <typename T, ushort Dim, ushort Extra, ushort RowBlocks>
inline void readPrepared(
    thread PrefillRows<T, Dim, Extra, RowBlocks>& rows, threadgroup const T* query, threadgroup const T* extra,
    threadgroup const float2* stats, uint stride, MatrixLane at) {
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    const uint row = b * 8u + at.row;
    MNK_UNROLL
    for (ushort i = 0; i < (Dim + Extra) / 16; ++i) {
      threadgroup const T* from = i < Dim / 16 ? query + 16u * i : extra + (16u * i - Dim);
      const vec<T, 4> x = *reinterpret_cast<threadgroup const vec<T, 4>*>(from + row * stride + 2u * at.column);
      rows.query[b][2 * i] = matrixOfTwo<T>(x.x, x.z);
      rows.query[b][2 * i + 1] = matrixOfTwo<T>(x.y, x.w);
    }
    rows.bias[b] = stats[row].x;
    rows.scoreScale[b] = stats[row].y;
  }
}

// Whether one of the simdgroup's rows sees one of the keys from `base` to before `end`, and whether each sees each.
template <typename T, ushort Dim, ushort Extra, ushort RowBlocks>
inline bool seesAny(thread const PrefillRows<T, Dim, Extra, RowBlocks>& rows, uint base, uint end) {
  bool seesOne = false;
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    seesOne = seesOne || (base < rows.row[b].endKey && (flashSeesPinned || end > rows.row[b].firstKey));
  }
  return simd_any(seesOne);
}
template <typename T, ushort Dim, ushort Extra, ushort RowBlocks>
inline bool seesAll(thread const PrefillRows<T, Dim, Extra, RowBlocks>& rows, uint base, uint end) {
  bool seesEach = true;
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    seesEach = seesEach && base >= rows.row[b].firstKey && end <= rows.row[b].endKey;
  }
  return simd_all(seesEach);
}

// Products of keys and the `Count` elements of queries from `First` on.
template <ushort First, ushort Count, typename T, ushort Dim, ushort Extra, ushort RowBlocks, ushort Blocks>
MNK_SHARED void multiplyKeys(
    thread PrefillScores<RowBlocks, Blocks>& products, thread PrefillRows<T, Dim, Extra, RowBlocks>& rows,
    threadgroup const T* keys, uint stride, MatrixLane at) {
  simdgroup_float8x8 sums[RowBlocks][Blocks];
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    sums[i / Blocks][i % Blocks] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  threadgroup const T* own = keys + at.column * stride + 2u * at.row;
  MNK_UNROLL
  for (ushort i = 0; i < Count / 16; ++i) {
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      threadgroup const T* from = own + n * 8u * stride + 16u * i;
      const vec<T, 2> x = *reinterpret_cast<threadgroup const vec<T, 2>*>(from);
      const vec<T, 2> y = *reinterpret_cast<threadgroup const vec<T, 2>*>(from + stride);
      const simdgroup_matrix<T, 8, 8> even = matrixOfTwo<T>(x.x, y.x);
      const simdgroup_matrix<T, 8, 8> odd = matrixOfTwo<T>(x.y, y.y);
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        simdgroup_multiply_accumulate(sums[b][n], rows.query[b][First / 8 + 2 * i], even, sums[b][n]);
      }
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        simdgroup_multiply_accumulate(sums[b][n], rows.query[b][First / 8 + 2 * i + 1], odd, sums[b][n]);
      }
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    const ushort b = i / Blocks;
    const ushort n = i % Blocks;
    products.of[b][n] = float2(sums[b][n].thread_elements()[0], sums[b][n].thread_elements()[1]);
  }
}

// Adds the products with the RoPE part of keys to those with the latent part. Either may have scales.
template <ushort RowBlocks, ushort Blocks>
MNK_SHARED void addProducts(
    thread PrefillScores<RowBlocks, Blocks>& products, thread PrefillScores<RowBlocks, Blocks>& others,
    threadgroup const float* scales, threadgroup const float* otherScales, MatrixLane at) {
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    const ushort b = i / Blocks;
    const ushort n = i % Blocks;
    float2 scale = float2(1.0f);
    float2 otherScale = float2(1.0f);
    const uint index = n * 8u + at.column;
    if (kvHasQuantizedValues) {
      scale = float2(scales[index], scales[index + 1u]);
    }
    if (kvHasQuantizedKeys) {
      otherScale = float2(otherScales[index], otherScales[index + 1u]);
    }
    products.of[b][n] = products.of[b][n] * scale + others.of[b][n] * otherScale;
  }
}

// Sums the products that the simdgroups sharing these rows have stored, from `first` on. All of them sum in the same
// order and so get bit-identical scores.
template <ushort RowBlocks, ushort Blocks>
MNK_SHARED void sumParts(
    thread PrefillScores<RowBlocks, Blocks>& products, threadgroup const float2* first, uint lane) {
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    float2 sum = first[i * 32u + lane];
    for (uint part = 1; part < flashSimdgroupsPerRow; ++part) {
      sum += first[(part * (RowBlocks * Blocks) + i) * 32u + lane];
    }
    products.of[i / Blocks][i % Blocks] = sum;
  }
}

// Turns products into scores and masks keys that a row does not see. `isCommon`: all rows see all keys of the tile.
template <typename T, ushort Dim, ushort Extra, ushort RowBlocks, ushort Blocks>
MNK_SHARED void scoreProducts(
    thread PrefillScores<RowBlocks, Blocks>& scores, thread PrefillRows<T, Dim, Extra, RowBlocks>& rows,
    constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence, threadgroup const float* scales,
    device const uchar* mask, uint base, uint end, bool isCommon, MatrixLane at) {
  threadgroup const float* ownScales = scales + at.column;
  MNK_UNROLL
  for (ushort n = 0; n < Blocks; ++n) {
    MNK_UNROLL
    for (ushort side = 0; side < 2; ++side) {
      const uint key = base + at.column + (n * 8u + side);
      const float scale = kvHasQuantizedKeys && Extra == 0 ? ownScales[n * 8u + side] : 1.0f;
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        float score = scores.of[b][n][side] * (rows.scoreScale[b] * scale);
        if (hasBias(Extra != 0)) {
          score += rows.bias[b];
        }
        if (changesScores() || !isCommon) {
          const bool isSeen = isCommon || (key < end && isSeenBy(p, rows.row[b], key));
          score = isSeen ? scoreOf(p, sequence, rows.row[b], key, score, mask) : kMaskedScore;
        }
        scores.of[b][n][side] = score;
      }
    }
  }
}

// Updates each row's maximum with its scores, rescales its sums if the maximum has grown, and turns scores into probs,
// multiplied by the scales of quantized values.
template <typename T, ushort Dim, ushort Extra, ushort RowBlocks, ushort Blocks>
MNK_SHARED void updatePrefill(
    thread PrefillScores<RowBlocks, Blocks>& scores, thread PrefillRows<T, Dim, Extra, RowBlocks>& rows,
    threadgroup const float* scales, MatrixLane at) {
  threadgroup const float* ownScales = scales + at.column;
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    float newMax = rows.rowMax[b];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      newMax = max(newMax, max(scores.of[b][n].x, scores.of[b][n].y));
    }
    newMax = maxOfRow(newMax);
    float rescale = fast::exp2(rows.rowMax[b] - newMax);
    rows.rowMax[b] = newMax;
    rows.rowSum[b] *= rescale;
    uint exponent = rows.unit[b];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      float2 prob = float2(fast::exp2(scores.of[b][n].x - newMax), fast::exp2(scores.of[b][n].y - newMax));
      rows.rowSum[b] += prob.x + prob.y;
      if (kvHasQuantizedValues) {
        // The scale of a masked key may be NaN.
        const float2 scaled = prob * float2(ownScales[n * 8u], ownScales[n * 8u + 1u]);
        prob = float2(prob.x == 0.0f ? 0.0f : scaled.x, prob.y == 0.0f ? 0.0f : scaled.y);
        exponent = max(exponent, max(finiteExponent(prob.x), finiteExponent(prob.y)));
      }
      scores.of[b][n] = prob;
    }
    if (kvHasQuantizedValues) {
      exponent = maxOfRow(exponent);
      const uint grown = exponent - rows.unit[b];
      rescale *= as_type<float>(grown < 126u ? (127u - grown) << 23 : 0u);
      rows.unit[b] = exponent;
      const float perUnit = as_type<float>((254u - exponent) << 23);
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        scores.of[b][n] *= perUnit;
      }
    }
    if (simd_any(rescale != 1.0f)) {
      MNK_UNROLL
      for (ushort i = 0; i < Dim / 8; ++i) {
        rows.result[b][i].thread_elements()[0] *= rescale;
        rows.result[b][i].thread_elements()[1] *= rescale;
      }
    }
  }
}

// Adds values to results, weighted by probs.
template <typename T, ushort Dim, ushort Extra, ushort RowBlocks, ushort Blocks>
MNK_SHARED void multiplyValues(
    thread PrefillScores<RowBlocks, Blocks>& probs, thread PrefillRows<T, Dim, Extra, RowBlocks>& rows,
    threadgroup const T* values, uint stride, MatrixLane at) {
  simdgroup_matrix<T, 8, 8> prob[RowBlocks][Blocks];
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    const float2 x = probs.of[i / Blocks][i % Blocks];
    prob[i / Blocks][i % Blocks] = matrixOfTwo<T>(T(x.x), T(x.y));
  }
  threadgroup const T* own = values + at.row * stride + at.column;
  MNK_UNROLL
  for (ushort i = 0; i < Dim / 8; ++i) {
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      const vec<T, 2> x = *reinterpret_cast<threadgroup const vec<T, 2>*>(own + n * 8u * stride + 8u * i);
      const simdgroup_matrix<T, 8, 8> value = matrixOfTwo<T>(x.x, x.y);
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        simdgroup_multiply_accumulate(rows.result[b][i], prob[b][n], value, rows.result[b][i]);
      }
    }
  }
}

// The same if values that some rows do not see are infinite or NaN. 0 * NaN is NaN, so values with prob 0 are skipped,
// key by key.
template <typename T, ushort Dim, ushort Extra, ushort RowBlocks, ushort Blocks>
MNK_SHARED void accumulateUnmaskedValues(
    thread PrefillScores<RowBlocks, Blocks>& probs, thread PrefillRows<T, Dim, Extra, RowBlocks>& rows,
    threadgroup const T* values, uint stride, MatrixLane at, uint lane) {
  MNK_UNROLL
  for (ushort n = 0; n < Blocks; ++n) {
    for (uint column = 0; column < 8u; ++column) {
      threadgroup const T* value = values + (n * 8u + column) * stride + at.column;
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        const float own = column % 2u == 0u ? probs.of[b][n].x : probs.of[b][n].y;
        const float prob = simd_shuffle(own, laneOfColumn(lane, column));
        if (prob != 0.0f) {
          MNK_UNROLL
          for (ushort i = 0; i < Dim / 8; ++i) {
            rows.result[b][i].thread_elements()[0] += prob * float(value[8 * i]);
            rows.result[b][i].thread_elements()[1] += prob * float(value[8 * i + 1]);
          }
        }
      }
    }
  }
}
