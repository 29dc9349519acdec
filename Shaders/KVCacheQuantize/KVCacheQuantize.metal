// Quantizes new tokens into a cache; if its keys or values are dense, stores them as elements. Grid of threadgroups:
// (group of simdgroups, token). The lanes of a simdgroup share a vector, or several short ones. Simdgroups after those
// of the keys process the values, so that one dispatch stores both. No lane exits early, because lanes exchange
// elements; lanes without a vector hold zeros and store nothing. Keys may be rotated as MultiRoPE does before they are
// stored; then further threadgroups rotate the queries.
#include "../Common/CacheAddress.h"
#include "../Common/CodePlanes.h"
#include "../Common/Elements.h"
#include "../Common/Rotary.h"
#include "KVCacheQuantizeTypes.h"
#include "KVEncode.h"

pipeline_constant(bool, kvHasCounts, kKVCacheQuantizeHasCounts);
pipeline_constant(bool, kvHasProbe, kKVCacheQuantizeHasProbe);
pipeline_constant(bool, kvAppliesRoPE, kKVCacheQuantizeAppliesRoPE);
pipeline_constant(uint, kvQueryType, kRotaryAppendQueryType);

// Scales beyond the largest finite f16 saturate to it.
inline half turboScale(float scale, bool isNan) {
  const uint bits = min(as_type<uint>(scale), 0x477fe000u);
  return isNan ? as_type<half>(ushort(0x7e00)) : half(as_type<float>(bits));
}

// Destination of the codes and the scale of a vector.
struct QuantizedRow {
  device uchar* codes;  // of the cache; quantizeVector takes those of the row
  device uchar* scales;
  ulong row;
  bool isStored;
};

// Quantizes and stores a vector. Returns whether its scale saturated. `at` is the index of the lane within the vector.
template <ushort Chunks>
MNK_SHARED bool quantizeVector(
    threadgroup const float* tables, thread float4* x, KVCodecPlane plane, uint bits, VectorExponent size,
    QuantizedRow into, constant KVCacheQuantizeParams& p, uint at, bool isValue) {
  const bool isNan = !size.isFinite && (p.flags & uint(kKVPropagatesNonFinite)) != 0u;
  uint4 codes[Chunks];
  bool isSaturated = false;
  if (kvIsTurbo) {
    const uint unbiased = isValue ? uint(kKVUnbiasedValues) : uint(kKVUnbiasedKeys);
    const float scale = timesPowerOfTwo(
        encodeTurbo<Chunks>(
            tables, x, codes, plane, bits, at, (p.flags & unbiased) != 0u, p.candidates, p.candidateSpacing),
        size.power);
    isSaturated = as_type<uint>(scale) > 0x477fe000u;
    if (into.isStored && at == 0u) {
      reinterpret_cast<device half*>(into.scales)[into.row] = turboScale(scale, isNan);
    }
  } else {
    const float scale = kvIsAffine ? encodeAffine<Chunks>(x, codes, plane, size.power)
                                   : encodeMlx1<Chunks>(tables, x, codes, plane, bits, size.power);
    if (kvHasCounts) {
      isSaturated = maxOverLanes(as_type<uint>(scale), plane.lanes) == 0x7f7fffffu;
    }
    const uint blocks = mlx1Blocks(plane.headDim);
    const uint lanesOfBlock = plane.lanes / blocks;
    if (into.isStored && at % lanesOfBlock == 0u) {
      reinterpret_cast<device float*>(into.scales)[into.row * blocks + at / lanesOfBlock] =
          isNan ? as_type<float>(0x7fc00000u) : scale;
    }
  }
  storeCodes<Chunks>(codes, bits, into.codes, plane.headDim, at, into.isStored);
  return isSaturated;
}

// Applies RoPE to the elements of a query that a lane holds, from `first` on. Strides are in elements.
template <ushort Chunks>
MNK_SHARED void rotateQuery(
    constant MultiRoPEParams& p, constant uint2* frequencies, device const uint* positions, device const uint* offsets,
    RopeToken token, device const uchar* from, device uchar* into, uint head, uint first) {
  constant MultiRoPEOperand& queries = p.queries;
  const ulong source = token.sequence * queries.fromSequenceStride + token.token * queries.fromTokenStride +
                       head * queries.fromHeadStride;
  const ulong target = token.sequence * queries.intoSequenceStride + token.token * queries.intoTokenStride +
                       head * queries.intoHeadStride;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    const uint element = first + 4u * i;
    const float4 x = loadFour(from, kvQueryType, ropeIsVectorized, source + element);
    storeFour(
        into, kvQueryType, true, target + element,
        rotatedFour(p, frequencies, positions, offsets, token, from, kvQueryType, source, element, x));
  }
}

// Subtracts means and applies channel scales.
template <ushort Chunks>
inline void centerElements(
    thread float4* x, CodecVector vector, device const float* keyMeans, device const float* valueMeans,
    device const float* channelScales) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (kvHasKeyMeans && !vector.isValue) {
      x[i] = flushSubnormals(x[i] - flushSubnormals(fourFloats(keyMeans, vector.element + 4u * i)));
    }
    if (kvHasValueMeans && vector.isValue) {
      x[i] = flushSubnormals(x[i] - flushSubnormals(fourFloats(valueMeans, vector.element + 4u * i)));
    }
    if (kvHasChannelScales && !vector.isValue) {
      x[i] *= flushSubnormals(fourFloats(channelScales, vector.element + 4u * i));
    }
  }
}

// Normalizes a vector and applies the Hadamard rotation. `signs` has a word for each `kChunksOfWord` chunks.
template <ushort Chunks, ushort kChunksOfWord>
inline VectorExponent transformVector(thread float4* x, KVCodecPlane plane, thread const uint* signs, uint lane) {
  VectorExponent size = normalizeExponent<Chunks>(x, plane.lanes);
  if (kvIsUnrotated) {
    // Halves with scales of their own may differ in size, which a rotation would even out.
    size.power += normalizeExponent<Chunks>(x, plane.lanes / mlx1Blocks(plane.headDim)).power;
    return size;
  }
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = flipped(x[i], signs[i / kChunksOfWord] >> (4 * (i % kChunksOfWord)));
  }
  walshHadamard<Chunks>(x, plane.headDim, plane.lanes, lane);
  return size;
}

// Stores a vector in a dense cache.
template <ushort Chunks>
inline void storeDense(
    device uchar* into, ulong element, bool isCopied, thread const uint* words, thread const float4* x) {
  if (isCopied && kvDenseType == kvElementType) {
    // A bitwise copy preserves NaN payloads.
    storeWords<Chunks>(into, kvDenseType, kvHasAlignedCodes, element, words);
  } else {
    storeChunks<Chunks>(into, kvDenseType, kvHasAlignedCodes, element, x);
  }
}

// Stores the transformed elements of a key, and counts vectors that are not finite or whose scale saturated.
template <ushort Chunks>
inline void reportVector(
    thread const float4* x, CodecVector vector, bool isFinite, bool isSaturated, device float* probe,
    device atomic_uint* counts) {
  if (kvHasProbe && !vector.isValue) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      probe[vector.element + 4u * i] = x[i].x;
      probe[vector.element + 4u * i + 1u] = x[i].y;
      probe[vector.element + 4u * i + 2u] = x[i].z;
      probe[vector.element + 4u * i + 3u] = x[i].w;
    }
  }
  if (kvHasCounts && vector.lane == 0u) {
    if (!isFinite) {
      atomic_fetch_add_explicit(&counts[0], 1u, memory_order_relaxed);
    }
    if (isSaturated) {
      atomic_fetch_add_explicit(&counts[1], 1u, memory_order_relaxed);
    }
  }
}

template <ushort Chunks>
kernel void kvCacheQuantize(
    constant KVCacheQuantizeParams& p [[buffer(kKVCacheQuantizeParams)]],
    device const uchar* keys [[buffer(kKVCacheQuantizeKeys)]],
    device const uchar* values [[buffer(kKVCacheQuantizeValues), function_constant(kvHasValues)]],
    device uchar* keyCodes [[buffer(kKVCacheQuantizeKeyCodes)]],
    device uchar* valueCodes [[buffer(kKVCacheQuantizeValueCodes), function_constant(kvHasValues)]],
    device uchar* keyScales [[buffer(kKVCacheQuantizeKeyScales), function_constant(kvHasQuantizedKeys)]],
    device uchar* valueScales [[buffer(kKVCacheQuantizeValueScales), function_constant(kvHasQuantizedValues)]],
    device const uint* sequences [[buffer(kKVCacheQuantizeSequences), function_constant(kvHasRows)]],
    device const uint* positions [[buffer(kKVCacheQuantizePositions), function_constant(kvHasRows)]],
    device const float* keyMeans [[buffer(kKVCacheQuantizeKeyMeans), function_constant(kvHasKeyMeans)]],
    device const float* valueMeans [[buffer(kKVCacheQuantizeValueMeans), function_constant(kvHasValueMeans)]],
    device const float* channelScales [[buffer(kKVCacheQuantizeChannelScales), function_constant(kvHasChannelScales)]],
    device atomic_uint* counts [[buffer(kKVCacheQuantizeCounts), function_constant(kvHasCounts)]],
    device float* probe [[buffer(kKVCacheQuantizeProbe), function_constant(kvHasProbe)]],
    constant MultiRoPEParams& rotation [[buffer(kKVCacheQuantizeRotation), function_constant(kvAppliesRoPE)]],
    constant uint2* frequencies [[buffer(kKVCacheQuantizeFrequencies), function_constant(kvAppliesRoPE)]],
    device const uchar* queries [[buffer(kKVCacheQuantizeQueries), function_constant(kvAppliesRoPE)]],
    device uchar* rotatedQueries [[buffer(kKVCacheQuantizeRotatedQueries), function_constant(kvAppliesRoPE)]],
    device const uint* rotaryPositions [[buffer(kKVCacheQuantizeRotaryPositions), function_constant(ropeHasPositions)]],
    device const uint* rotaryOffsets [[buffer(kKVCacheQuantizeRotaryOffsets), function_constant(ropeHasOffsets)]],
    uint2 group [[threadgroup_position_in_grid]], uint2 groups [[threadgroups_per_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float2, memory, kCodeTableFloats);  // two tables
  threadgroup float* tables = reinterpret_cast<threadgroup float*>(memory);
  const uint index = group.x * simdgroups + simdgroup;
  if (kvAppliesRoPE) {
    // A threadgroup processes either the cache or queries, so that either all of its threads reach the barrier or none
    // does. Heads of queries are counted from the last threadgroup, which takes no division.
    if (index - simdgroup >= p.keys.simdgroups + p.values.simdgroups) {
      const uint lanes = lanesOf(kvKeyDim, Chunks);
      const uint first = lane % lanes * 4u * Chunks;
      const uint head = ((groups.x - 1u - group.x) * simdgroups + simdgroup) * (32u / lanes) + lane / lanes;
      const CacheAddress address = cacheAddress(p.address, sequences, positions, 0u, group.y);
      if (head < rotation.queries.heads && first < kvKeyDim) {
        rotateQuery<Chunks>(
            rotation, frequencies, rotaryPositions, rotaryOffsets, ropeToken(rotation, address.sourceToken), queries,
            rotatedQueries, head, first);
      }
      return;
    }
  }
  CodecVector vector = codecVector(p.keys, p.values, Chunks, index, lane);
  device const uchar* source = keys;
  QuantizedRow into = {keyCodes, nullptr, 0, false};
  if (kvHasQuantizedKeys) {
    into.scales = keyScales;
  }
  if (kvHasValues && vector.isValue) {
    source = values;
    into.codes = valueCodes;
    if (kvHasQuantizedValues) {
      into.scales = valueScales;
    }
  }
  const uint held = min(vector.head, p.heads - 1u);
  const CacheAddress address = cacheAddress(p.address, sequences, positions, held, group.y);
  into.row = address.cacheRow;
  const bool hasElements = vector.first < vector.plane.headDim;
  into.isStored = vector.head < p.heads && address.isStored && hasElements;
  const ulong keyUnit = sourceUnit(p.address, p.address.keys, held, address.sourceToken);
  const ulong valueUnit = sourceUnit(p.address, p.address.values, held, address.sourceToken);

  uint words[4 * Chunks] = {};
  if (into.isStored) {
    loadChunks<Chunks>(
        source, kvElementType, kvIsVectorizedElements, (vector.isValue ? valueUnit : keyUnit) + vector.first, words);
  }
  // Loads signs and fills the tables while the loads of the vector are in flight.
  constexpr ushort kChunksOfWord = Chunks < 8 ? Chunks : 8;
  uint signs[Chunks / kChunksOfWord] = {};
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; i = ushort(i + kChunksOfWord)) {
    if (vector.isCoded && hasElements && !kvIsUnrotated) {
      signs[i / kChunksOfWord] = codecSigns(vector.plane.headDim, vector.first + 4u * i);
    }
  }
  threadgroup float* valueTables = hasValueTable() ? tables + kCodeTableFloats : tables;
  const uint place = simdgroup * 32u + lane;
  fillCodeTables(tables, kvKeyBits, searchesCells<Chunks>(kvKeyBits), place, simdgroups * 32u);
  if (hasValueTable()) {
    fillCodeTables(valueTables, kvValueBits, searchesCells<Chunks>(kvValueBits), place, simdgroups * 32u);
  }
  float4 x[Chunks];
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = floatsOfWords(words, kvElementType, i);
    if (kvAppliesRoPE) {
      if (into.isStored && !vector.isValue) {
        x[i] = rotatedFour(
            rotation, frequencies, rotaryPositions, rotaryOffsets, ropeToken(rotation, address.sourceToken), source,
            kvElementType, keyUnit, vector.first + 4u * i, x[i]);
      }
    }
    if (!isNarrow() && vector.isCoded) {
      x[i] = flushSubnormals(x[i]);
    }
  }
  if (into.isStored) {
    centerElements<Chunks>(x, vector, keyMeans, valueMeans, channelScales);
  }

  VectorExponent size = {0, true};
  if (vector.isCoded) {
    size = transformVector<Chunks, kChunksOfWord>(x, vector.plane, signs, lane);
  } else if (into.isStored) {
    const ulong element = into.row * vector.plane.headDim + vector.first;
    storeDense<Chunks>(into.codes, element, vector.isValue || !kvAppliesRoPE, words, x);
  }

  threadgroup_barrier(mem_flags::mem_threadgroup);  // tables are filled
  if (!vector.isCoded) {
    return;
  }
  into.codes += into.row * vector.plane.codeBytes;
  // Bits, lanes and head dim are compile-time constants in both calls, so that loops unroll.
  bool isSaturated = false;
  if (vector.isValue && (hasValueTable() || kvValueDim != kvKeyDim)) {
    vector.plane.lanes = lanesOf(kvValueDim, Chunks);
    vector.plane.headDim = kvValueDim;
    isSaturated = quantizeVector<Chunks>(valueTables, x, vector.plane, kvValueBits, size, into, p, vector.lane, true);
  } else {
    vector.plane.lanes = lanesOf(kvKeyDim, Chunks);
    vector.plane.headDim = kvKeyDim;
    isSaturated =
        quantizeVector<Chunks>(tables, x, vector.plane, kvKeyBits, size, into, p, vector.lane, vector.isValue);
  }

  if (into.isStored) {
    reportVector<Chunks>(x, vector, size.isFinite, isSaturated, probe, counts);
  }
}

#define ROW(chunks) instantiate_kernel("kvCacheQuantize_" #chunks, kvCacheQuantize, chunks)
MNK_VECTOR_CHUNKS(ROW)
#undef ROW
