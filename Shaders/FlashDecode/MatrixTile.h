// The phases of a tile of keys and values in the matrix kernel: load, score, values. MatrixSoftmax.h has those in
// between.
#pragma once
#include "MatrixSoftmax.h"

// A lane's share of a tile, in blocks of eight keys.
template <ushort Dim, ushort Blocks>
struct MatrixTile {
  CachePiece<Dim / 4> keys[Blocks];
  CachePiece<Dim / 8> values[2 * Blocks];
  uint valueScales[Blocks];  // of the keys of the lane's rows
};

// Loads the keys of a tile, then its values and their scales. Past `end`, the last key is loaded again and its score is
// masked: without a branch, the compiler can hoist the loads.
template <ushort Dim, ushort Blocks>
MNK_SHARED void loadKeys(
    thread MatrixTile<Dim, Blocks>& tile, constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence,
    CacheVectors from, MatrixLane at, uint base, uint end) {
  MNK_UNROLL
  for (ushort n = 0; n < Blocks; ++n) {
    const uint key = min(base + n * 8u + keyOfBlock(at.row), end - 1u);
    loadShare<Dim, 4>(tile.keys[n], from, vectorOfKey(p, sequence, key), at.column / 2u);
  }
}
template <ushort Dim, ushort Blocks>
MNK_SHARED void loadValues(
    thread MatrixTile<Dim, Blocks>& tile, constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence,
    CacheVectors from, MatrixLane at, uint base, uint end) {
  MNK_UNROLL
  for (ushort n = 0; n < 2 * Blocks; ++n) {
    const uint key = min(base + n / 2 * 8u + keyOfBlock(at.column + n % 2), end - 1u);
    loadShare<Dim, 8>(tile.values[n], from, vectorOfKey(p, sequence, key), at.row);
  }
}
template <ushort Dim, ushort Blocks>
MNK_SHARED void loadValueScales(
    thread MatrixTile<Dim, Blocks>& tile, constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence,
    CacheVectors from, MatrixLane at, uint base, uint end) {
  if (kvHasQuantizedKeys) {
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      const uint key = min(base + n * 8u + keyOfBlock(at.row), end - 1u);
      tile.valueScales[n] = storedScale(from, vectorOfKey(p, sequence, key), 0);
    }
  }
}

template <ushort Dim, ushort Blocks, ushort RowBlocks>
MNK_SHARED MatrixScores<RowBlocks, Blocks> scoreTile(
    thread MatrixTile<Dim, Blocks>& tile, thread MatrixRows<half, Dim, Dim, RowBlocks>& rows, CacheVectors keys,
    threadgroup const half2* table, uint copy) {
  // With few blocks, two independent accumulators per block hide the latency of the multiply-accumulate.
  constexpr ushort Chains = Blocks * RowBlocks > 2 ? 1 : 2;
  simdgroup_float8x8 products[RowBlocks][Blocks][Chains];
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks * Chains; ++i) {
    products[i / (Blocks * Chains)][i / Chains % Blocks][i % Chains] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  MNK_UNROLL
  for (ushort i = 0; i < Dim / 8; ++i) {
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      simdgroup_half8x8 key = matrixOf(keyPair(tile.keys[n], i, kvKeyBits, table, copy));
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        simdgroup_multiply_accumulate(products[b][n][i % Chains], key, rows.query[b][i], products[b][n][i % Chains]);
      }
    }
  }
  MatrixScores<RowBlocks, Blocks> scores;
  MNK_UNROLL
  for (ushort n = 0; n < Blocks; ++n) {
    const float scale = kvHasQuantizedKeys ? codebookScale(tile.keys[n].scale, keys) : 1.0f;
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      float2 product = float2(products[b][n][0].thread_elements()[0], products[b][n][0].thread_elements()[1]);
      if (Chains > 1) {
        product +=
            float2(products[b][n][Chains - 1].thread_elements()[0], products[b][n][Chains - 1].thread_elements()[1]);
      }
      scores.of[b][n] = product * (rows.scoreScale[b] * scale);
      if (kvHasQuantizedKeys && kvHasKeyMeans) {
        scores.of[b][n] += rows.bias[b];
      }
    }
  }
  return scores;
}

// Whether all halves of these pieces are finite, in all lanes.
template <ushort Elements, ushort Count>
inline bool areFinite(thread const CachePiece<Elements>* pieces) {
  bool isFinite = true;
  MNK_UNROLL
  for (ushort i = 0; i < Count * Elements / 2; ++i) {
    const uint word = pieces[i / (Elements / 2)].words[i % (Elements / 2)];
    isFinite = isFinite && (word & 0x7c00u) != 0x7c00u && (word & 0x7c000000u) != 0x7c000000u;
  }
  return !simd_any(!isFinite);
}

template <ushort Dim, ushort Blocks, ushort RowBlocks>
inline void multiplyValues(
    thread simdgroup_half8x8 (&prob)[RowBlocks][Blocks], thread MatrixRows<half, Dim, Dim, RowBlocks>& rows,
    thread const MatrixTile<Dim, Blocks>& tile, threadgroup const half2* table, uint copy) {
  MNK_UNROLL
  for (ushort i = 0; i < Dim / 8; i = ushort(i + 2)) {
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      simdgroup_half8x8 even =
          matrixOf(valuePair(tile.values[2 * n], tile.values[2 * n + 1], i, kvValueBits, table, copy));
      simdgroup_half8x8 odd =
          matrixOf(valuePair(tile.values[2 * n], tile.values[2 * n + 1], i + 1u, kvValueBits, table, copy));
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        simdgroup_multiply_accumulate(rows.result[b][i], even, prob[b][n], rows.result[b][i]);
        simdgroup_multiply_accumulate(rows.result[b][i + 1], odd, prob[b][n], rows.result[b][i + 1]);
      }
    }
  }
}

// Like multiplyValues, if values that one token sees and another does not are infinite or NaN. 0 * NaN is NaN, so
// tokens are processed one after the other, and each accumulates only its own columns.
template <ushort Dim, ushort Blocks, ushort RowBlocks>
inline void addSeenValues(
    thread simdgroup_half8x8 (&prob)[RowBlocks][Blocks], thread MatrixRows<half, Dim, Dim, RowBlocks>& rows,
    thread const MatrixTile<Dim, Blocks>& tile, thread const AttentionOperands& operands, AttentionTokens tokens,
    threadgroup const half2* table, uint copy, MatrixLane at, uint base, uint end) {
  uint seenBy[2 * Blocks];  // bit t: token t sees the key of this column
  MNK_UNROLL
  for (ushort n = 0; n < 2 * Blocks; ++n) {
    seenBy[n] = 0;
  }
  const int firstPosition = attentionRow(operands, tokens, 0).position;
  for (uint token = 0; token < tokens.count; ++token) {
    // All heads of a token see the same keys.
    const AttentionRow row = attentionRow(operands, tokens, token * operands.p.group);
    MNK_UNROLL
    for (ushort n = 0; n < 2 * Blocks; ++n) {
      const uint key = base + n / 2 * 8u + keyOfBlock(at.column + n % 2);
      seenBy[n] |= key < end && isSeenBy(operands.p, row, key) ? 1u << token : 0u;
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < Dim / 8; ++i) {
    for (uint token = 0; token < tokens.count; ++token) {
      simdgroup_half8x8 value[Blocks];
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        const half2 pair = valuePair(tile.values[2 * n], tile.values[2 * n + 1], i, kvValueBits, table, copy);
        value[n] = matrixOf(half2(
            ((seenBy[2 * n] >> token) & 1u) != 0u ? pair.x : half(0.0f),
            ((seenBy[2 * n + 1] >> token) & 1u) != 0u ? pair.y : half(0.0f)));
      }
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        MNK_UNROLL
        for (ushort n = 0; n < Blocks; ++n) {
          simdgroup_multiply_accumulate(sum, value[n], prob[b][n], sum);
        }
        const bool isOwn0 = rows.row[b][0].position - firstPosition == int(token);
        const bool isOwn1 = rows.row[b][1].position - firstPosition == int(token);
        rows.result[b][i].thread_elements()[0] += isOwn0 ? sum.thread_elements()[0] : 0.0f;
        rows.result[b][i].thread_elements()[1] += isOwn1 ? sum.thread_elements()[1] : 0.0f;
      }
    }
  }
}

// Adds the values of a tile to the results, weighted by probs.
template <ushort Dim, ushort Blocks, ushort RowBlocks>
MNK_SHARED void accumulateValues(
    thread MatrixScores<RowBlocks, Blocks>& probs, thread MatrixRows<half, Dim, Dim, RowBlocks>& rows,
    thread MatrixTile<Dim, Blocks>& tile, thread const AttentionOperands& operands, AttentionTokens tokens,
    threadgroup const half2* table, uint copy, MatrixLane at, uint base, uint end, bool isCommon) {
  simdgroup_half8x8 prob[RowBlocks][Blocks];
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    const float2 x = probs.of[i / Blocks][i % Blocks] * perUnit(rows.unit[i / Blocks]);
    prob[i / Blocks][i % Blocks] = matrixOf(half2(half(x.x), half(x.y)));
  }
  if (kvHasQuantizedKeys || !flashHasTokens || isCommon || areFinite<Dim / 8, 2 * Blocks>(tile.values)) {
    multiplyValues(prob, rows, tile, table, copy);
  } else {
    addSeenValues(prob, rows, tile, operands, tokens, table, copy, at, base, end);
  }
}
