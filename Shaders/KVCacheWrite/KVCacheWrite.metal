// Stores new tokens in a cache. Grid: (unit, head, token). A thread stores one unit of a row. Units after those of the
// keys are units of the values, so that one dispatch moves both.
#include "../Common/CacheAddress.h"
#include "../Common/Elements.h"
#include "KVCacheWriteTypes.h"

pipeline_constant(bool, kvIsVectorized, kKVCacheWriteIsVectorized);

// Copies bits, so that NaN payloads and subnormal numbers are preserved.
template <typename Unit>
kernel void kvCacheMove(
    constant KVCacheWriteParams& p [[buffer(kKVCacheWriteParams)]],
    device const Unit* keys [[buffer(kKVCacheWriteKeys)]],
    device const Unit* values [[buffer(kKVCacheWriteValues), function_constant(kvHasValues)]],
    device Unit* keyCache [[buffer(kKVCacheWriteKeyCache)]],
    device Unit* valueCache [[buffer(kKVCacheWriteValueCache), function_constant(kvHasValues)]],
    device const uint* sequences [[buffer(kKVCacheWriteSequences), function_constant(kvHasRows)]],
    device const uint* positions [[buffer(kKVCacheWritePositions), function_constant(kvHasRows)]],
    uint3 at [[thread_position_in_grid]]) {
  const CacheAddress address = cacheAddress(p.address, sequences, positions, at.y, at.z);
  if (!address.isStored) {
    return;
  }
  if (kvHasValues && at.x >= p.keyUnits) {
    const uint unit = at.x - p.keyUnits;
    valueCache[address.cacheRow * p.valueUnits + unit] =
        values[sourceUnit(p.address, p.address.values, at.y, address.sourceToken) + unit];
  } else {
    keyCache[address.cacheRow * p.keyUnits + at.x] =
        keys[sourceUnit(p.address, p.address.keys, at.y, address.sourceToken) + at.x];
  }
}

// Offsets are in units.
template <typename Source, typename Cache>
inline void convertUnit(device const Source* source, ulong from, device Cache* cache, ulong to) {
  if (kvIsVectorized) {
    const vec<Source, 4> unit = reinterpret_cast<device const vec<Source, 4>*>(source)[from];
    reinterpret_cast<device vec<Cache, 4>*>(cache)[to] = convertElements<Cache>(unit);
  } else {
    cache[to] = convertElement<Cache>(source[from]);
  }
}

template <typename Source, typename Cache>
kernel void kvCacheConvert(
    constant KVCacheWriteParams& p [[buffer(kKVCacheWriteParams)]],
    device const Source* keys [[buffer(kKVCacheWriteKeys)]],
    device const Source* values [[buffer(kKVCacheWriteValues), function_constant(kvHasValues)]],
    device Cache* keyCache [[buffer(kKVCacheWriteKeyCache)]],
    device Cache* valueCache [[buffer(kKVCacheWriteValueCache), function_constant(kvHasValues)]],
    device const uint* sequences [[buffer(kKVCacheWriteSequences), function_constant(kvHasRows)]],
    device const uint* positions [[buffer(kKVCacheWritePositions), function_constant(kvHasRows)]],
    uint3 at [[thread_position_in_grid]]) {
  const CacheAddress address = cacheAddress(p.address, sequences, positions, at.y, at.z);
  if (!address.isStored) {
    return;
  }
  if (kvHasValues && at.x >= p.keyUnits) {
    const uint unit = at.x - p.keyUnits;
    convertUnit(
        values, sourceUnit(p.address, p.address.values, at.y, address.sourceToken) + unit, valueCache,
        address.cacheRow * p.valueUnits + unit);
  } else {
    convertUnit(
        keys, sourceUnit(p.address, p.address.keys, at.y, address.sourceToken) + at.x, keyCache,
        address.cacheRow * p.keyUnits + at.x);
  }
}

#define ROW(bytes, type) instantiate_kernel("kvCacheMove_" #bytes, kvCacheMove, type)
MNK_KV_CACHE_MOVES(ROW)
#undef ROW
#define ROW(source, cache) instantiate_kernel("kvCacheConvert_" #source "_" #cache, kvCacheConvert, source, cache)
MNK_KV_CACHE_CONVERSIONS(ROW)
#undef ROW
