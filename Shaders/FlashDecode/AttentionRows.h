// The query rows that attend to a cache in one threadgroup: which keys they see, where these keys are stored, how
// queries are loaded, and how a dot product becomes a score.
#pragma once
#include "../Common/Elements.h"
#include "AttentionOperands.h"
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
  int position;   // of its token
  uint firstKey;  // the first key that it sees
  uint endKey;    // one past the last key that it sees; isSeenBy adds pinned keys before firstKey
  ulong mask;     // offset of its first mask element
  float slope;
};

inline uint keyOfPosition(constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence, uint position) {
  return position <= p.pinned ? position : max(p.pinned, position - min(position, sequence.skipped));
}

// The tokens of one sequence in this dispatch, and which of their rows this threadgroup computes for which head.
struct AttentionTokens {
  uint kvHead;     // of the cache
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
inline AttentionTokens tokensOf(thread const AttentionOperands& operands, uint3 place) {
  constant FlashDecodeParams& p = operands.p;
  AttentionTokens result;
  result.kvHead = place.y;
  if (flashIsRagged) {
    constant FlashDecodeRun* runs = operands.runs;
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
inline uint plannedGroups(thread const AttentionOperands& operands) {
  if (flashIsRagged) {
    constant FlashDecodeRun& last = operands.runs[operands.p.sequences - 1u];
    return last.firstGroup + last.rowGroups;
  }
  return operands.p.rowGroups * operands.p.sequences;
}

// Rows of the tokens, of one head of the cache.
inline uint rowsOf(constant FlashDecodeParams& p, AttentionTokens tokens) {
  return p.group * tokens.count;
}

// The token of a row.
inline uint tokenOf(constant FlashDecodeParams& p, uint row) {
  return flashHasTokens ? row / p.group : 0u;
}

// The index of a row among all result rows. `row` counts the rows of one KV head.
inline ulong rowIndex(constant FlashDecodeParams& p, AttentionTokens tokens, uint row) {
  const uint token = tokenOf(p, row);
  return (tokens.first + token) * p.finish.heads + tokens.kvHead * p.group + (row - token * p.group);
}

// The first element of a row's query.
inline ulong queryStart(constant FlashDecodeParams& p, AttentionTokens tokens, uint row) {
  const uint token = tokenOf(p, row);
  const uint head = tokens.kvHead * p.group + (row - token * p.group);
  return tokens.query + token * p.queryRowStride + head * p.queryHeadStride;
}

MNK_SHARED AttentionRow attentionRow(thread const AttentionOperands& operands, AttentionTokens tokens, uint row) {
  constant FlashDecodeParams& p = operands.p;
  constant FlashDecodeSequence& sequence = operands.sequences[tokens.sequence];
  const uint token = tokenOf(p, row);
  AttentionRow result;
  result.head = tokens.kvHead * p.group + (row - token * p.group);
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
    result.slope = operands.slopes[result.head] * kLog2E;
  }
  return result;
}

// Consecutive keys: those from `begin` on, below `end`.
struct KeyRange {
  uint begin;
  uint end;
};
inline KeyRange keysOfSplit(constant FlashDecodeSequence& sequence, uint split) {
  const uint begin = min(sequence.firstKey + split * sequence.splitKeys, sequence.endKey);
  return KeyRange{begin, min(begin + sequence.splitKeys, sequence.endKey)};
}
// The keys below `end` that all rows from `first` to `last` see, so that their scores need no masking. Rows are ordered
// by position: the first sees the oldest keys and the last the newest.
inline KeyRange commonKeys(
    thread const AttentionOperands& operands, AttentionTokens tokens, uint first, uint last, uint end) {
  const AttentionRow oldest = attentionRow(operands, tokens, first);
  const AttentionRow newest = attentionRow(operands, tokens, last);
  return KeyRange{newest.firstKey, min(end, oldest.endKey)};
}

// Whether a row sees a key.
inline bool isSeenBy(constant FlashDecodeParams& p, AttentionRow row, uint key) {
  return key < row.endKey && (key >= row.firstKey || (flashSeesPinned && key < p.pinned));
}

// The cached keys and values of a threadgroup's head.
struct CacheHead {
  CacheVectors keys;
  CacheVectors values;
  ulong first;  // the index of the first one
};
inline CacheHead cacheHead(
    thread const AttentionOperands& operands, AttentionTokens tokens, uint keyDim, uint valueDim) {
  constant FlashDecodeParams& p = operands.p;
  constant FlashDecodeSequence& sequence = operands.sequences[tokens.sequence];
  const ulong first =
      ulong(sequence.sequence) * p.finish.kvHeads * p.capacity + ulong(tokens.kvHead) * p.cacheHeadStride;
  CacheHead head;
  head.keys = vectorsFrom(
      operands.keys, operands.keyScales, first, keyCodeBits(), keyDim, p.keyCodeBytes, p.keyInverseRoot,
      p.keyScaleFactor);
  head.values = vectorsFrom(
      operands.values, operands.valueScales, first, valueCodeBits(), valueDim, p.valueCodeBytes, p.finish.inverseRoot,
      p.valueScaleFactor);
  head.first = first;
  return head;
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
    thread const AttentionOperands& operands, constant FlashDecodeSequence& sequence, AttentionRow row, uint key,
    float product) {
  constant FlashDecodeParams& p = operands.p;
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
    score += loadElement(operands.mask, flashMaskType, row.mask + column) * kLog2E;
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
  hadamardRotate<Chunks>(x, headDim, lanes, lane, inverseRoot);
  return bias;
}

// Multiplies a query by `scale` and, for quantized keys, applies their Hadamard rotation. Returns the bias that the
// keys' mean adds to each score, or 0.
template <ushort Chunks>
MNK_SHARED float rotateQuery(
    thread float4* x, thread const AttentionOperands& operands, uint kvHead, uint headDim, uint lanes, uint lane,
    float scale) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= scale;
  }
  if (!kvHasQuantizedKeys || kvIsUnrotated) {
    return 0.0f;
  }
  return rotatePart<Chunks>(
      x, kvHead, headDim, lanes, lane, operands.p.keyInverseRoot, kvHasKeyMeans, operands.keyMeans, kvHasChannelScales,
      operands.channelScales);
}
// The same for the latent part of a query; its keys are the cache's values.
template <ushort Chunks>
MNK_SHARED float rotateLatent(
    thread float4* x, thread const AttentionOperands& operands, uint kvHead, uint headDim, uint lanes, uint lane,
    float scale) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= scale;
  }
  if (!kvHasQuantizedValues || kvIsUnrotated) {
    return 0.0f;
  }
  return rotatePart<Chunks>(
      x, kvHead, headDim, lanes, lane, operands.p.finish.inverseRoot, kvHasValueMeans, operands.out.valueMeans, false,
      nullptr);
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
