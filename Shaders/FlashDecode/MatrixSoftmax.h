// The rows of a simdgroup that computes with 8x8 matrices: what it keeps of them, and the softmax of a tile of their
// scores. Matrices are transposed, so that only the maximum and the sum of a row need cross-lane reductions:
//   scores  [key][row]  = keys [key][dim] * queries [dim][row]
//   results [dim][row] += values [dim][key] * probs [key][row]     probs replace scores, in place
// Scales of quantized vectors are applied to scores and probs, so that matrices hold codebook entries.
#pragma once
#include "MatrixPieces.h"

// The rows of a simdgroup, in blocks of eight: `Queries` elements of their queries, `Dim` elements of their results,
// and their softmax so far. A lane has two rows of each block: those of its columns.
template <typename T, ushort Queries, ushort Dim, ushort RowBlocks>
struct MatrixRows {
  AttentionRow row[RowBlocks][2];
  simdgroup_matrix<T, 8, 8> query[RowBlocks][Queries / 8];
  float2 scoreScale[RowBlocks];  // of products with these queries
  float2 bias[RowBlocks];        // added to scores for the mean of keys
  simdgroup_float8x8 result[RowBlocks][Dim / 8];
  float2 rowMax[RowBlocks];
  float2 rowSum[RowBlocks];
  // Probs times value scales must fit in halves. Results of quantized values are therefore scaled by a power of two:
  // the exponent of the row's largest such product so far.
  uint2 unit[RowBlocks];  // its exponent
};

// Of the keys of a tile, in blocks of eight.
template <ushort RowBlocks, ushort Blocks>
struct MatrixScores {
  float2 of[RowBlocks][Blocks];
};

template <typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void startSoftmax(thread MatrixRows<T, Queries, Dim, RowBlocks>& rows) {
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    rows.rowMax[b] = float2(kInitialRowMax);
    rows.rowSum[b] = float2(0.0f);
    rows.unit[b] = uint2(1u);
    MNK_UNROLL
    for (ushort i = 0; i < Dim / 8; ++i) {
      rows.result[b][i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }
}

// Sets a lane's rows. Rows past the last one repeat it.
template <typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void setRows(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& rows, thread const AttentionOperands& operands,
    AttentionTokens tokens, uint first, MatrixLane at) {
  MNK_UNROLL
  for (ushort r = 0; r < 2 * RowBlocks; ++r) {
    const uint row = min(first + r / 2 * 8u + at.column + r % 2, rowsOf(operands.p, tokens) - 1u);
    rows.row[r / 2][r % 2] = attentionRow(operands, tokens, row);
  }
}

template <typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void scaleResults(thread MatrixRows<T, Queries, Dim, RowBlocks>& rows, ushort b, float2 factor) {
  MNK_UNROLL
  for (ushort i = 0; i < Dim / 8; ++i) {
    rows.result[b][i].thread_elements()[0] *= factor.x;
    rows.result[b][i].thread_elements()[1] *= factor.y;
  }
}

// 2^exponent of a row's unit, or its inverse.
inline float2 unitOf(uint2 exponent) {
  return kvHasQuantizedValues ? as_type<float2>(exponent << 23) : float2(1.0f);
}
inline float2 perUnit(uint2 exponent) {
  return kvHasQuantizedValues ? as_type<float2>((uint2(254u) - exponent) << 23) : float2(1.0f);
}

// Lowers the units of results that `rescale`, at most 1, is about to multiply, by its power of two: otherwise, products
// that are small beside what the results once were would be 0. Returns the factor for results in the new units.
inline float lowerUnit(thread uint& exponent, float rescale) {
  const uint power = as_type<uint>(rescale) >> 23;
  const uint lowered = min(127u - min(power, 127u), exponent - 1u);
  exponent -= lowered;
  return rescale * as_type<float>((127u + lowered) << 23);
}

// Applies the score options, and hides keys that a row does not see. `first` is the key of the lane's matrix row in the
// first block. `isCommon`: all rows see all keys of the tile.
template <typename T, ushort Queries, ushort Dim, ushort Blocks, ushort RowBlocks>
MNK_SHARED void maskScores(
    thread MatrixScores<RowBlocks, Blocks>& scores, thread MatrixRows<T, Queries, Dim, RowBlocks>& rows,
    thread const AttentionOperands& operands, constant FlashDecodeSequence& sequence, uint first, uint end,
    bool isCommon) {
  if (!changesScores() && isCommon) {
    return;
  }
  MNK_UNROLL
  for (ushort n = 0; n < Blocks; ++n) {
    const uint key = first + n * 8u;
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      const float2 score = scores.of[b][n];
      const bool isSeen0 = isCommon || (key < end && isSeenBy(operands.p, rows.row[b][0], key));
      const bool isSeen1 = isCommon || (key < end && isSeenBy(operands.p, rows.row[b][1], key));
      scores.of[b][n] = float2(
          isSeen0 ? scoreOf(operands, sequence, rows.row[b][0], key, score.x) : kMaskedScore,
          isSeen1 ? scoreOf(operands, sequence, rows.row[b][1], key, score.y) : kMaskedScore);
    }
  }
}

// Probs are relative to a score of their row, rowMax. It is raised to the row's maximum, with all that depends on it,
// only when a score exceeds it by more than this: most tiles then need no reduction across lanes. Probs of up to 2^8
// are as precise in halves as those below 1.
constant constexpr float kMaxExcess = 8.0f;

// Turns scores into probs and adds them to the sums of their rows.
template <typename T, ushort Queries, ushort Dim, ushort Blocks, ushort RowBlocks>
MNK_SHARED void updateSoftmax(
    thread MatrixScores<RowBlocks, Blocks>& scores, thread MatrixRows<T, Queries, Dim, RowBlocks>& rows) {
  float2 highest[RowBlocks];
  bool isHigher = false;
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    highest[b] = scores.of[b][0];
    MNK_UNROLL
    for (ushort n = 1; n < Blocks; ++n) {
      highest[b] = max(highest[b], scores.of[b][n]);
    }
    isHigher = isHigher || highest[b].x > rows.rowMax[b].x + kMaxExcess || highest[b].y > rows.rowMax[b].y + kMaxExcess;
  }
  if (simd_any(isHigher)) {
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      const float2 newMax = maxOfColumns(max(highest[b], rows.rowMax[b]));
      const float2 rescale = float2(fast::exp2(rows.rowMax[b].x - newMax.x), fast::exp2(rows.rowMax[b].y - newMax.y));
      rows.rowMax[b] = newMax;
      rows.rowSum[b] *= rescale;
      float2 factor = rescale;
      if (kvHasQuantizedValues) {
        uint x = rows.unit[b].x;
        uint y = rows.unit[b].y;
        factor = float2(lowerUnit(x, rescale.x), lowerUnit(y, rescale.y));
        rows.unit[b] = uint2(x, y);
      }
      scaleResults(rows, b, factor);
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    const ushort b = i / Blocks;
    const float2 score = scores.of[b][i % Blocks];
    const float2 prob = float2(fast::exp2(score.x - rows.rowMax[b].x), fast::exp2(score.y - rows.rowMax[b].y));
    rows.rowSum[b] += prob;
    scores.of[b][i % Blocks] = prob;
  }
}

// Multiplies probs by the scales of the values of the lane's keys, and raises the unit of a row's results if a product
// exceeds it.
template <typename T, ushort Queries, ushort Dim, ushort Blocks, ushort RowBlocks>
MNK_SHARED void scaleProbs(
    thread MatrixScores<RowBlocks, Blocks>& probs, thread MatrixRows<T, Queries, Dim, RowBlocks>& rows,
    thread const float* scales, bool mayBeZero) {
  bool isLarger = false;
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    const float2 unitEnd = as_type<float2>((rows.unit[b] + uint2(1u)) << 23);
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      const float2 prob = probs.of[b][n];
      float2 scaled = prob * scales[n];
      if (mayBeZero) {  // the scale of a masked key may be NaN
        scaled = float2(prob.x == 0.0f ? 0.0f : scaled.x, prob.y == 0.0f ? 0.0f : scaled.y);
      }
      isLarger = isLarger || fabs(scaled.x) >= unitEnd.x || fabs(scaled.y) >= unitEnd.y;
      probs.of[b][n] = scaled;
    }
  }
  if (!simd_any(isLarger)) {
    return;
  }
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    uint2 exponent = rows.unit[b];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      exponent = max(exponent, uint2(finiteExponent(probs.of[b][n].x), finiteExponent(probs.of[b][n].y)));
    }
    exponent = maxOfColumns(exponent);
    const uint2 grown = exponent - rows.unit[b];
    rows.unit[b] = exponent;
    scaleResults(
        rows, b,
        float2(
            as_type<float>(grown.x < 126u ? (127u - grown.x) << 23 : 0u),
            as_type<float>(grown.y < 126u ? (127u - grown.y) << 23 : 0u)));
  }
}
