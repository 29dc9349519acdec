#include "Ops/KVCacheWrite/KVCacheWrite.hpp"

#include <algorithm>
#include <numeric>

#include "KVCacheWrite/KVCacheWriteTypes.h"
#include "Ops/Common/HeadsMemory.hpp"

namespace mnk {

namespace {

using Op = KVCacheWrite;

bool isPair(DType source, DType cache) {
  return source == cache || (isFloat(source) && isFloat(cache));
}

bool hasRankOfCaches(const Tensor& tensor) {
  return tensor.shape().rank() == 3 || tensor.shape().rank() == 4;
}

std::string cacheShapeText(const KVCacheView& view) {
  return fmt::format("{} heads of {}", view.heads(), view.headDim());
}

// The first source that shares bytes with a destination, or the two destinations that share bytes.
std::optional<Overlap> writeOverlap(const Op& op) {
  std::vector<NamedRange> sources{{"keys", rangeOf(sourceOf(op.keys, op.sourceLayout))}};
  std::vector<NamedRange> targets{{"the key cache", op.into.keys.range()}};
  if (op.values) sources.push_back({"values", rangeOf(sourceOf(*op.values, op.sourceLayout))});
  if (op.into.values && op.values) targets.push_back({"the value cache", op.into.values->range()});
  addRows(sources, op.rows);
  return firstOverlap(sources, targets);
}

constexpr Rule<Op> kCacheRules[] = {
    INVALID_IF(!op.into.keys || (op.into.values && !*op.into.values), "the cache has no memory",
               op.into.keys ? "a value cache without memory" : "a key cache without memory", "tensors with memory",
               "Make the cache's tensors before writing to it."),

    INVALID_IF(op.values && !op.into.values, "values are given but the cache has none",
               "values, and a cache of keys alone", "a cache with values",
               "Give the cache a tensor for values, or write keys alone."),

    INVALID_IF(
        !hasRankOfCaches(op.into.keys) || (op.values && op.into.values->shape().rank() != op.into.keys.shape().rank()),
        "the cache has the wrong rank",
        op.values ? fmt::format("keys {}, values {}", op.into.keys.shape().text(), op.into.values->shape().text())
                  : op.into.keys.shape().text(),
        op.into.layout == KVLayout::headMajor ? "[heads, capacity, headDim] or [sequences, heads, capacity, headDim]"
                                              : "[capacity, heads, headDim] or [sequences, capacity, heads, headDim]",
        "Reshape the cache; keys and values need the same rank."),

    INVALID_IF(!isPair(op.keys.tensor.dtype(), op.into.keys.dtype()), "this pair of dtypes cannot be written",
               fmt::format("{} to {}", name(op.keys.tensor.dtype()), name(op.into.keys.dtype())),
               "f32, f16 or bf16 to any of these, or equal dtypes",
               "Convert the keys, or make the cache with another dtype."),

    INVALID_IF(op.values && (op.values->tensor.dtype() != op.keys.tensor.dtype() ||
                             op.into.values->dtype() != op.into.keys.dtype()),
               "values have another dtype than keys",
               fmt::format("{} to {}", name(op.values->tensor.dtype()), name(op.into.values->dtype())),
               fmt::format("{} to {}, as for keys", name(op.keys.tensor.dtype()), name(op.into.keys.dtype())),
               "Use one pair of dtypes for both, or write keys and values separately."),

    INVALID_IF(op.into.capacity() == 0, "the cache has no capacity",
               fmt::format("{} {}", layoutText(op.into.layout), op.into.keys.shape().text()), "at least one slot",
               "Make a cache with a capacity of at least 1."),

    INVALID_IF(op.values && !areValuesLikeKeys(op.into), "the value cache differs from the key cache",
               op.into.values->shape().text(), fmt::format("{}, but for headDim", op.into.keys.shape().text()),
               "Make both with the same sequences, heads and capacity."),
};

constexpr Rule<Op> kFitRules[] = {
    INVALID_IF(!isOf(op.keys, op.sourceLayout, op.into.heads(), op.into.headDim()),
               "keys do not have the cache's heads and headDim", sourceText(op.keys, op.sourceLayout),
               cacheShapeText(op.into), "Reshape the keys, or write to a cache made for them."),

    INVALID_IF(op.values && !isOf(*op.values, op.sourceLayout, op.into.heads(), valuesOf(op.into).headDim()),
               "values do not have the cache's heads and headDim", sourceText(*op.values, op.sourceLayout),
               cacheShapeText(valuesOf(op.into)), "Reshape the values, or write to a cache made for them."),
};

constexpr Rule<Op> kWriteOverlapRules[] = {
    INVALID_IF(writeOverlap(op), "source and destination share memory", writeOverlap(op)->text(), "separate memory",
               "Write from a tensor that is not part of the cache."),
};

}  // namespace

std::span<const Rule<KVCacheWrite>> kvCacheWriteRules() {
  static const std::vector<Rule<KVCacheWrite>> all = joined<KVCacheWrite>(
      {cacheSourceRules(), kCacheRules, cacheLayoutRules(), kFitRules, cacheAddressRules(), kWriteOverlapRules});
  return all;
}

uint64_t KVCacheWritePlane::sourceRowBytes() const {
  return headDim * byteSize(source.tensor.dtype());
}

uint64_t KVCacheWritePlane::cacheRowBytes() const {
  return headDim * byteSize(cache.dtype());
}

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
