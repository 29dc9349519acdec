#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"

#include <algorithm>
#include <numeric>

#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/KVCacheWrite/KVCacheWritePlane.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

using Op = KVCacheWrite;

// Both tables are made from the lists that the shader instantiates, so neither side can name a kernel the other lacks.
struct Move {
  uint64_t bytes;  // moved by one thread; widest first
  std::string_view function;
};
constexpr Move kMoves[] = {
#define ROW(bytes, type) {bytes, "kvCacheMove_" #bytes},
    MNK_KV_CACHE_MOVES(ROW)
#undef ROW
};

struct Conversion {
  DType source;
  DType cache;
  std::string_view function;
};
constexpr Conversion kConversions[] = {
#define ROW(source, cache) {DType::source, DType::cache, "kvCacheConvert_" #source "_" #cache},
    MNK_KV_CACHE_CONVERSIONS(ROW)
#undef ROW
};

std::vector<KVCacheWritePlane> writtenPlanes(const Op& op) {
  std::vector<KVCacheWritePlane> planes{
      {sourceOf(op.keys, op.sourceLayout), op.into.keys, op.into.headDim(), kKVCacheWriteKeys, kKVCacheWriteKeyCache}};
  if (op.values) {
    const Shape& shape = op.into.values->shape();
    planes.push_back({sourceOf(*op.values, op.sourceLayout), *op.into.values, shape[shape.rank() - 1],
                      kKVCacheWriteValues, kKVCacheWriteValueCache});
  }
  return planes;
}

struct Kernel {
  std::string_view function;
  uint64_t unitBytes = 0;  // of the source, stored by one thread
  bool isVectorized = false;
};

// The widest kernel that every row of keys and values allows.
Kernel chooseKernel(const Op& op, const std::vector<KVCacheWritePlane>& planes) {
  uint64_t sourceAlignment = kMoves[0].bytes;
  uint64_t cacheAlignment = kMoves[0].bytes;
  for (const KVCacheWritePlane& plane : planes) {
    const uint64_t bytes = byteSize(plane.source.tensor.dtype());
    const uint64_t alignment = elementAlignment(plane.source, kMoves[0].bytes / bytes) * bytes;
    sourceAlignment = std::gcd(sourceAlignment, std::gcd(alignment, plane.sourceRowBytes()));
    cacheAlignment = std::gcd(cacheAlignment, std::gcd(plane.cache.range().begin, plane.cacheRowBytes()));
  }
  const DType source = op.keys.tensor.dtype();
  const DType cache = op.into.keys.dtype();
  if (source == cache) {
    const uint64_t alignment = std::min(sourceAlignment, cacheAlignment);
    const Move& move = *std::find_if(std::begin(kMoves), std::prev(std::end(kMoves)),
                                     [&](const Move& candidate) { return candidate.bytes <= alignment; });
    return {.function = move.function, .unitBytes = move.bytes};
  }
  const Conversion& conversion = *std::find_if(
      std::begin(kConversions), std::prev(std::end(kConversions)),
      [&](const Conversion& candidate) { return candidate.source == source && candidate.cache == cache; });
  const bool isVectorized = sourceAlignment >= 4 * byteSize(source) && cacheAlignment >= 4 * byteSize(cache);
  return {.function = conversion.function,
          .unitBytes = (isVectorized ? 4 : 1) * byteSize(source),
          .isVectorized = isVectorized};
}

Dispatch makeWriteDispatch(const Op& op) {
  const std::vector<KVCacheWritePlane> planes = writtenPlanes(op);
  const Kernel kernel = chooseKernel(op, planes);
  const CacheAddressing addressing(op);
  const auto units = [&](size_t plane) {  // the rules bound every extent
    return plane < planes.size() ? static_cast<uint32_t>(planes[plane].sourceRowBytes() / kernel.unitBytes) : 0;
  };
  const KVCacheWriteParams params{.address = addressing.params(kernel.unitBytes / byteSize(op.keys.tensor.dtype())),
                                  .keyUnits = units(0),
                                  .valueUnits = units(1)};
  Dispatch dispatch;
  dispatch.kind = Op::name;
  dispatch.kernel.function = kernel.function;
  dispatch.kernel.constants = addressing.constants();
  dispatch.kernel.constants.emplace_back(kKVCacheWriteIsVectorized, kernel.isVectorized);
  dispatch.inlines.push_back(InlineBytes::of(kKVCacheWriteParams, params));
  for (const KVCacheWritePlane& plane : planes) bindPlane(dispatch, addressing, plane);
  addressing.bindRows(dispatch, kKVCacheWriteSequences, kKVCacheWritePositions);
  dispatch.grid.extent = {params.keyUnits + params.valueUnits, static_cast<uint32_t>(op.into.heads()),
                          params.address.tokens};
  return dispatch;
}

}  // namespace

void bindPlane(Dispatch& dispatch, const CacheAddressing& addressing, const KVCacheWritePlane& plane) {
  Binding target = Binding::whole(plane.cacheIndex, plane.cache, Access::write);
  target.writes = addressing.cacheRegions(plane.cacheRowBytes());
  dispatch.buffers.push_back(addressing.sourceBinding(plane.sourceIndex, plane.source, Access::read));
  dispatch.buffers.push_back(std::move(target));
  addressing.countWritten(dispatch, plane.cacheRowBytes());
}

Result<Plan> plan(const KVCacheWrite& op) {
  return guarded(Op::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(kvCacheWriteRules(), op, Op::name));
    Plan plan{.op = std::string(Op::name), .dispatches = {}};
    uint64_t rowElements = 0;
    for (const KVCacheWritePlane& plane : writtenPlanes(op)) rowElements += plane.headDim;
    if (storesNothing(op) || rowElements == 0) return plan;
    plan.dispatches.push_back(makeWriteDispatch(op));
    return plan;
  });
}

}  // namespace mnk
