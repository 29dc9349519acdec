// The query rows that attend to a cache in one threadgroup: which keys they see, where these keys are stored, how
// queries are loaded, and how a dot product becomes a score.
#pragma once
#include "../Common/FourElements.h"
#include "CacheTile.h"
#include "FlashDecodeTypes.h"
#include "OnlineSoftmax.h"

pipeline_constant(uint, flashQueryType, kFlashDecodeQueryType);
pipeline_constant(uint, flashMaskType, kFlashDecodeMaskType);
pipeline_constant(bool, flashIsVectorized, kFlashDecodeIsVectorized);
pipeline_constant(bool, flashHasMask, kFlashDecodeHasMask);
pipeline_constant(bool, flashHasSlopes, kFlashDecodeHasSlopes);
pipeline_constant(bool, flashHasSoftcap, kFlashDecodeHasSoftcap);
pipeline_constant(bool, flashHasTokens, kFlashDecodeHasTokens);
pipeline_constant(bool, flashIsInOrder, kFlashDecodeIsInOrder);
pipeline_constant(bool, flashSeesPinned, kFlashDecodeSeesPinned);
pipeline_constant(bool, flashIsRagged, kFlashDecodeIsRagged);

// One row: a query head of one token. Rows of a head of the cache are counted token by token.
struct AttentionRow {
  uint head;      // of the queries
  ulong index;    // among all rows of results
  ulong query;    // its first element
  int position;   // of its token
  uint firstKey;  // the first key that it sees
  uint endKey;    // one past the last key that it sees; isSeenBy adds pinned keys before firstKey
  ulong mask;     // offset of its first mask element
  float slope;
};

inline uint keyOfPosition(constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence, uint position) {
  return position <= p.pinned ? position : max(p.pinned, position - min(position, sequence.skipped));
}

// The tokens of one sequence in this dispatch, and which of their rows this threadgroup computes.
struct AttentionTokens {
  uint sequence;   // among those of the dispatch
  uint rowGroup;   // of the threadgroup, among those of the sequence
  uint rowGroups;  // for each head of the cache
  uint count;
  uint left;    // tokens from the first one to the end of the sequence, including those of later dispatches
  ulong first;  // among the tokens of all results
  ulong query;  // the first element of the first token's queries
};

// The tokens of a threadgroup. Decoding one token of one sequence avoids the division, which would delay the first
// loads.
inline AttentionTokens tokensOf(constant FlashDecodeParams& p, constant FlashDecodeRun* runs, uint3 place) {
  AttentionTokens result;
  if (flashIsRagged) {
    // Binary search for the last run whose first group is at or before this threadgroup.
    uint found = 0;
    uint end = p.sequences;
    while (end - found > 1u) {
      const uint middle = (found + end) / 2u;
      if (runs[middle].firstGroup <= place.z) {
        found = middle;
      } else {
        end = middle;
      }
    }
    result.sequence = found;
    result.rowGroup = place.z - runs[found].firstGroup;
    result.rowGroups = runs[found].rowGroups;
    result.count = runs[found].rows;
    result.left = runs[found].rowsLeft;
    result.first = runs[found].firstRow;
    result.query = result.first * p.queryRowStride;
    return result;
  }
  result.sequence = p.rowGroups > 1u ? place.z / p.rowGroups : place.z;
  result.rowGroup = place.z - result.sequence * p.rowGroups;
  result.rowGroups = p.rowGroups;
  result.count = p.rows;
  result.left = p.allRows - p.firstRow;
  result.first = ulong(p.firstSequence + result.sequence) * p.allRows + p.firstRow;
  result.query = result.sequence * p.querySequenceStride;
  return result;
}

// Groups of rows of all sequences of a dispatch.
inline uint plannedGroups(constant FlashDecodeParams& p, constant FlashDecodeRun* runs) {
  if (flashIsRagged) {
    return runs[p.sequences - 1u].firstGroup + runs[p.sequences - 1u].rowGroups;
  }
  return p.rowGroups * p.sequences;
}

// The token of a row.
inline uint tokenOf(constant FlashDecodeParams& p, uint row) {
  return flashHasTokens ? row / p.group : 0u;
}

// The index of a row among all result rows. `row` counts the rows of one KV head.
inline ulong rowIndex(constant FlashDecodeParams& p, AttentionTokens tokens, uint kvHead, uint row) {
  const uint token = tokenOf(p, row);
  return (tokens.first + token) * p.finish.heads + kvHead * p.group + (row - token * p.group);
}

// The first element of a row's query.
inline ulong queryStart(constant FlashDecodeParams& p, AttentionTokens tokens, uint kvHead, uint row) {
  const uint token = tokenOf(p, row);
  return tokens.query + token * p.queryRowStride + (kvHead * p.group + (row - token * p.group)) * p.queryHeadStride;
}

MNK_SHARED AttentionRow attentionRow(
    constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence, AttentionTokens tokens, uint kvHead,
    uint row, device const float* slopes) {
  const uint token = tokenOf(p, row);
  AttentionRow result;
  result.head = kvHead * p.group + (row - token * p.group);
  result.index = rowIndex(p, tokens, kvHead, row);
  result.query = queryStart(p, tokens, kvHead, row);
  result.position = sequence.rowsEnd - int(tokens.left - token);
  const uint until = uint(max(result.position + 1, 0));  // number of positions up to and including its own
  const uint cut = p.window != 0u ? until - min(until, p.window) : 0u;
  result.firstKey = keyOfPosition(p, sequence, cut);
  if (flashSeesPinned && result.firstKey <= p.pinned) {
    result.firstKey = 0;
  }
  result.endKey = p.isCausal != 0u ? min(keyOfPosition(p, sequence, until), sequence.endKey) : sequence.endKey;
  result.mask = 0;
  if (flashHasMask) {
    result.mask = (p.firstSequence + tokens.sequence) * p.maskSequenceStride + result.head * p.maskHeadStride +
                  (p.firstRow + token) * p.maskRowStride;
  }
  result.slope = 0.0f;
  if (flashHasSlopes) {
    result.slope = slopes[result.head] * kLog2E;
  }
  return result;
}

// Whether a row sees a key.
inline bool isSeenBy(constant FlashDecodeParams& p, AttentionRow row, uint key) {
  return key < row.endKey && (key >= row.firstKey || (flashSeesPinned && key < p.pinned));
}

// The index in the cache of the first vector of a sequence's head.
inline ulong firstVector(constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence, uint kvHead) {
  return ulong(sequence.sequence) * p.finish.kvHeads * p.capacity + ulong(kvHead) * p.cacheHeadStride;
}

// The offset of a key in vectors, from the first vector of the sequence's head. A wrapped ring continues after its
// pinned slots.
inline ulong vectorOfKey(constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence, uint key) {
  if (flashIsInOrder) {
    return key;
  }
  uint slot = key < p.pinned ? key : key + sequence.start;
  if (slot >= p.capacity) {
    slot -= p.capacity - p.pinned;
  }
  return ulong(slot) * p.slotStride;
}

// Whether scoreOf changes products.
inline bool changesScores() {
  return flashHasSoftcap || flashHasSlopes || flashHasMask;
}

// Converts the dot product with a query, already multiplied by queryScale, to a score. The row must see the key.
MNK_SHARED float scoreOf(
    constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence, AttentionRow row, uint key, float product,
    device const uchar* mask) {
  float score = product;
  if (flashHasSoftcap) {
    score = precise::tanh(score / p.softcap) * (p.softcap * kLog2E);
  }
  if (flashHasSlopes) {
    const uint position = key < p.pinned ? key : key + sequence.skipped;
    score += row.slope * float(int(position) - row.position);
  }
  if (flashHasMask) {
    // The mask has a column for every key in the cache, including the hidden ones between the pinned keys and the
    // window.
    const uint column = flashSeesPinned && key >= p.pinned ? key + sequence.hidden : key;
    score += loadElement(mask, flashMaskType, row.mask + column) * kLog2E;
  }
  return score;
}

// Loads a query, distributed over lanes as in WalshHadamard.h. Elements from `headDim` on are 0.
template <ushort Chunks>
MNK_SHARED void loadQuery(
    thread float4* x, device const uchar* queries, ulong start, uint headDim, uint lanes, uint lane) {
  const uint first = lane % lanes * (4u * Chunks);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = float4(0.0f);
    if (lanes * (4u * Chunks) == headDim || first + 4u * i < headDim) {
      x[i] = loadFour(queries, flashQueryType, flashIsVectorized, start + first + 4u * i);
    }
  }
}

// Applies the Hadamard rotation of a quantized plane to a query or a part of one. Returns the bias: the dot product of
// the query with the plane's mean, which every product lacks. `lanes` is a power of two; elements past the end of the
// query must be 0.
template <ushort Chunks>
MNK_SHARED float rotatePart(
    thread float4* x, uint kvHead, uint headDim, uint lanes, uint lane, float inverseRoot, bool hasMeans,
    device const float* means, bool hasChannelScales, device const float* channelScales) {
  float bias = 0.0f;
  const bool isPadded = lanes * (4u * Chunks) != headDim;
  const uint first = lane % lanes * (4u * Chunks);
  const ulong headBase = ulong(kvHead) * headDim + first;
  if (hasMeans) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      if (!isPadded || first + 4u * i < headDim) {
        const float4 product = x[i] * fourFloats(means, headBase + 4u * i);
        bias += (product.x + product.y) + (product.z + product.w);
      }
    }
    bias = sumOver(bias, 1, ushort(lanes));
  }
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (!isPadded || first + 4u * i < headDim) {
      if (hasChannelScales) {
        x[i] /= fourFloats(channelScales, headBase + 4u * i);
      }
      x[i] = flipped(x[i], codecSigns(headDim, first + 4u * i));
    }
  }
  turned<Chunks>(x, headDim, lanes, lane, inverseRoot);
  return bias;
}

// Multiplies a query by `scale` and, for quantized keys, applies their Hadamard rotation. Returns the bias that the
// keys' mean adds to each score, or 0.
template <ushort Chunks>
MNK_SHARED float rotateQuery(
    thread float4* x, constant FlashDecodeParams& p, uint kvHead, uint headDim, uint lanes, uint lane, float scale,
    device const float* keyMeans, device const float* channelScales) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= scale;
  }
  if (!kvHasQuantizedKeys || kvIsUnrotated) {
    return 0.0f;
  }
  return rotatePart<Chunks>(
      x, kvHead, headDim, lanes, lane, p.keyInverseRoot, kvHasKeyMeans, keyMeans, kvHasChannelScales, channelScales);
}
// The same for the latent part of a query; its keys are the cache's values.
template <ushort Chunks>
MNK_SHARED float rotateLatent(
    thread float4* x, constant FlashDecodeParams& p, uint kvHead, uint headDim, uint lanes, uint lane, float scale,
    device const float* valueMeans) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= scale;
  }
  if (!kvHasQuantizedValues || kvIsUnrotated) {
    return 0.0f;
  }
  return rotatePart<Chunks>(
      x, kvHead, headDim, lanes, lane, p.finish.inverseRoot, kvHasValueMeans, valueMeans, false, nullptr);
}

// Whether the mean of keys, or in a latent cache the mean of values, adds a bias to scores.
inline bool hasBias(bool isLatent) {
  return (kvHasQuantizedKeys && kvHasKeyMeans) || (isLatent && kvHasQuantizedValues && kvHasValueMeans);
}

// Multiplies a query by a power of two so that its largest magnitude is in [2^14, 2^15), where halves have full
// precision. Leaves a query with an infinity or a NaN unchanged. Returns the inverse factor.
template <ushort Chunks>
inline float normalizeQuery(thread float4* x) {
  uint largest = 0;  // bit patterns of magnitudes compare like the magnitudes; infinity and NaN compare largest
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    const uint4 bits = as_type<uint4>(x[i]) & uint4(0x7fffffffu);
    largest = max(largest, max(max(bits.x, bits.y), max(bits.z, bits.w)));
  }
  largest = maxOverLanes(largest, 32);
  const uint exponent = largest < 0x7f800000u ? max(largest >> 23, 15u) : 141u;
  const float factor = as_type<float>((268u - exponent) << 23);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= factor;
  }
  return as_type<float>((exponent - 14u) << 23);
}
