#include "MLXNativeKernels/KVCacheWrite.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "Ops/KVCacheWriteRules.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"
#include "Types/KVCacheWriteTypes.h"

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

// Consecutive tokens of a source or slots of a cache.
struct Run {
  uint64_t begin = 0;
  uint64_t count = 0;
};

// Which tokens are stored, and in which slots. A ring keeps pinned positions and its newest others; leaving out the
// tokens between them here gives every slot one writer, however long the write is.
struct Placement {
  uint64_t pinnedTokens = 0;
  uint64_t pinnedSlot = 0;
  uint64_t skippedTokens = 0;
  uint64_t otherTokens = 0;
  uint64_t firstSlot = 0;

  uint64_t stored() const { return pinnedTokens + otherTokens; }
};

Placement place(const Op& op, uint64_t tokens) {
  if (op.rows) return {.otherTokens = tokens};
  const KVCacheView& cache = op.into;
  Placement placement;
  if (op.position < cache.pinned) placement.pinnedTokens = std::min(tokens, cache.pinned - op.position);
  placement.pinnedSlot = placement.pinnedTokens == 0 ? 0 : op.position;
  const uint64_t others = tokens - placement.pinnedTokens;
  placement.otherTokens = std::min(others, cache.ringLength());
  placement.skippedTokens = others - placement.otherTokens;
  if (placement.otherTokens == 0) return placement;
  placement.firstSlot = cache.slotOf(op.position + placement.pinnedTokens + placement.skippedTokens);
  return placement;
}

// Splits a run at the end of its storage; what is past the end goes on at `restart`.
void addWrapped(std::vector<Run>& runs, Run run, uint64_t end, uint64_t restart) {
  const uint64_t before = std::min(run.count, end - run.begin);
  if (before != 0) runs.push_back({run.begin, before});
  if (run.count != before) runs.push_back({restart, run.count - before});
}

std::vector<Run> sourceRuns(const Op& op, const Placement& placement, uint64_t length) {
  std::vector<Run> runs;
  const uint64_t others = op.sourceOffset % length + placement.pinnedTokens + placement.skippedTokens;
  addWrapped(runs, {op.sourceOffset % length, placement.pinnedTokens}, length, 0);
  addWrapped(runs, {others % length, placement.otherTokens}, length, 0);
  return runs;
}

std::vector<Run> cacheRuns(const Op& op, const Placement& placement) {
  std::vector<Run> runs;
  if (placement.pinnedTokens != 0) runs.push_back({placement.pinnedSlot, placement.pinnedTokens});
  addWrapped(runs, {placement.firstSlot, placement.otherTokens}, op.into.capacity(), op.into.pinned);
  return runs;
}

// The bytes of runs of tokens or slots in [heads, length, row] or [length, heads, row].
std::vector<Region> regionsOf(const std::vector<Run>& runs, KVLayout layout, uint64_t heads, uint64_t length,
                              uint64_t rowBytes, uint64_t base) {
  std::vector<Region> regions;
  for (const Run& run : runs) {
    if (layout == KVLayout::headMajor) {
      regions.push_back({.offset = base + run.begin * rowBytes,
                         .rowBytes = run.count * rowBytes,
                         .rowStride = length * rowBytes,
                         .rows = heads});
    } else {
      const uint64_t bytes = run.count * heads * rowBytes;
      regions.push_back(
          {.offset = base + run.begin * heads * rowBytes, .rowBytes = bytes, .rowStride = bytes, .rows = 1});
    }
  }
  return regions;
}

// Keys or values: a source and its place in the cache.
struct Plane {
  const Tensor& source;
  const Tensor& cache;
  uint64_t headDim;
  uint32_t sourceIndex;
  uint32_t cacheIndex;

  uint64_t sourceRowBytes() const { return headDim * byteSize(source.dtype()); }
  uint64_t cacheRowBytes() const { return headDim * byteSize(cache.dtype()); }
};

std::vector<Plane> planesOf(const Op& op) {
  std::vector<Plane> planes{{op.keys, op.into.keys, op.into.headDim(), kKVCacheWriteKeys, kKVCacheWriteKeyCache}};
  if (op.values) {
    const Shape& shape = op.into.values->shape();
    planes.push_back(
        {*op.values, *op.into.values, shape[shape.rank() - 1], kKVCacheWriteValues, kKVCacheWriteValueCache});
  }
  return planes;
}

struct Kernel {
  std::string_view function;
  uint64_t unitBytes = 0;  // of the source, stored by one thread
  bool isVectorized = false;
};

// The widest kernel that every row of keys and values allows.
Kernel chooseKernel(const Op& op, const std::vector<Plane>& planes) {
  uint64_t sourceAlignment = kMoves[0].bytes;
  uint64_t cacheAlignment = kMoves[0].bytes;
  for (const Plane& plane : planes) {
    sourceAlignment = std::gcd(sourceAlignment, std::gcd(plane.source.range().begin, plane.sourceRowBytes()));
    cacheAlignment = std::gcd(cacheAlignment, std::gcd(plane.cache.range().begin, plane.cacheRowBytes()));
  }
  const DType source = op.keys.dtype();
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

KVCacheWriteParams paramsOf(const Op& op, const Placement& placement, const std::vector<Plane>& planes,
                            uint64_t unitBytes) {
  const KVCacheView& cache = op.into;
  const uint64_t sourceLength = sourceShape(op.keys, op.sourceLayout).tokens;
  const auto narrow = [](uint64_t value) { return static_cast<uint32_t>(value); };  // the rules bound every extent
  const bool isHeadMajorSource = op.sourceLayout == KVLayout::headMajor;
  const bool isHeadMajorCache = cache.layout == KVLayout::headMajor;
  return {.sequenceStride = cache.heads() * cache.capacity(),
          .sequence = narrow(op.rows ? 0 : op.sequence),
          .sequences = narrow(cache.sequences()),
          .keyUnits = narrow(planes[0].sourceRowBytes() / unitBytes),
          .valueUnits = narrow(planes.size() > 1 ? planes[1].sourceRowBytes() / unitBytes : 0),
          .tokens = narrow(placement.stored()),
          .sourceTokenStride = narrow(isHeadMajorSource ? 1 : cache.heads()),
          .sourceHeadStride = narrow(isHeadMajorSource ? sourceLength : 1),
          .sourceStart = narrow(op.sourceOffset % sourceLength),
          .sourceLength = narrow(sourceLength),
          .slotStride = narrow(isHeadMajorCache ? 1 : cache.heads()),
          .cacheHeadStride = narrow(isHeadMajorCache ? cache.capacity() : 1),
          .capacity = narrow(cache.capacity()),
          .pinned = cache.pinned,
          .isRing = cache.wrap == KVWrap::ring,
          .pinnedTokens = narrow(placement.pinnedTokens),
          .pinnedSlot = narrow(placement.pinnedSlot),
          .skippedTokens = narrow(placement.skippedTokens),
          .firstSlot = narrow(placement.firstSlot)};
}

// Where listed rows go. A row whose slot a later row names too goes nowhere, which the kernel reads as a sequence that
// the cache does not have.
struct ListedRows {
  std::vector<uint32_t> sequences;
  std::vector<uint32_t> positions;

  static constexpr uint32_t kNowhere = UINT32_MAX;
};

std::optional<ListedRows> listedRows(const Op& op) {
  if (!op.rows) return std::nullopt;
  const auto* sequences = std::get_if<std::vector<uint32_t>>(&op.rows->sequences);
  const auto* positions = std::get_if<std::vector<uint32_t>>(&op.rows->positions);
  if (!sequences || !positions) return std::nullopt;
  ListedRows rows{*sequences, *positions};
  std::set<std::pair<uint32_t, uint64_t>> taken;
  for (size_t row = rows.sequences.size(); row-- > 0;) {
    const bool isNew = taken.emplace(rows.sequences[row], op.into.slotOf(rows.positions[row])).second;
    if (!isNew) rows.sequences[row] = ListedRows::kNowhere;
  }
  return rows;
}

std::vector<Region> cacheRegions(const Op& op, const Plane& plane, const Placement& placement,
                                 const std::optional<ListedRows>& rows) {
  const KVCacheView& cache = op.into;
  const auto regions = [&](uint64_t sequence, const std::vector<Run>& runs) {
    const uint64_t base = sequence * cache.heads() * cache.capacity() * plane.cacheRowBytes();
    return regionsOf(runs, cache.layout, cache.heads(), cache.capacity(), plane.cacheRowBytes(), base);
  };
  if (!op.rows) return regions(op.sequence, cacheRuns(op, placement));
  // Rows of a tensor go wherever it says, so any byte of the cache may be written.
  if (!rows) return Binding::whole(plane.cacheIndex, plane.cache, Access::write).writes;
  std::vector<Region> all;
  for (size_t row = 0; row < rows->sequences.size(); ++row) {
    if (rows->sequences[row] == ListedRows::kNowhere) continue;
    const auto one = regions(rows->sequences[row], {{cache.slotOf(rows->positions[row]), 1}});
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void bindPlane(Dispatch& dispatch, const Op& op, const Plane& plane, const Placement& placement,
               const std::optional<ListedRows>& rows) {
  const uint64_t sourceLength = sourceShape(op.keys, op.sourceLayout).tokens;
  Binding source = Binding::whole(plane.sourceIndex, plane.source, Access::read);
  source.reads = regionsOf(sourceRuns(op, placement, sourceLength), op.sourceLayout, op.into.heads(), sourceLength,
                           plane.sourceRowBytes(), 0);
  Binding target = Binding::whole(plane.cacheIndex, plane.cache, Access::write);
  target.writes = cacheRegions(op, plane, placement, rows);
  dispatch.buffers.push_back(std::move(source));
  dispatch.buffers.push_back(std::move(target));
}

void bindIndices(Dispatch& dispatch, uint32_t index, const RowIndices& indices) {
  if (const auto* tensor = std::get_if<Tensor>(&indices)) {
    dispatch.buffers.push_back(Binding::whole(index, *tensor, Access::read));
    return;
  }
  dispatch.inlines.push_back(InlineBytes::ofAll(index, std::get<std::vector<uint32_t>>(indices)));
}

Dispatch makeDispatch(const Op& op, const Placement& placement) {
  const std::vector<Plane> planes = planesOf(op);
  const Kernel kernel = chooseKernel(op, planes);
  const KVCacheWriteParams params = paramsOf(op, placement, planes, kernel.unitBytes);
  const std::optional<ListedRows> rows = listedRows(op);
  Dispatch dispatch;
  dispatch.kind = Op::name;
  dispatch.kernel.function = kernel.function;
  dispatch.kernel.constants = {{kKVCacheWriteHasValues, op.values.has_value()},
                               {kKVCacheWriteHasRows, op.rows.has_value()},
                               {kKVCacheWriteRowsMayRepeat, op.rows.has_value() && !rows},
                               {kKVCacheWriteIsVectorized, kernel.isVectorized}};
  dispatch.inlines.push_back(InlineBytes::of(kKVCacheWriteParams, params));
  for (const Plane& plane : planes) bindPlane(dispatch, op, plane, placement, rows);
  if (op.rows) {
    bindIndices(dispatch, kKVCacheWriteSequences, rows ? RowIndices(rows->sequences) : op.rows->sequences);
    bindIndices(dispatch, kKVCacheWritePositions, op.rows->positions);
  }
  if (op.rows && !rows) {
    dispatch.bytesWritten = 0;
    for (const Plane& plane : planes) {
      *dispatch.bytesWritten += placement.stored() * op.into.heads() * plane.cacheRowBytes();
    }
  }
  dispatch.grid.extent = {params.keyUnits + params.valueUnits, static_cast<uint32_t>(op.into.heads()), params.tokens};
  return dispatch;
}

}  // namespace

Result<Plan> plan(const KVCacheWrite& op) {
  return guarded(Op::name, [&]() -> Result<Plan> {
    if (auto error = firstBroken(kvCacheWriteRules(), op, Op::name)) return *error;
    Plan plan{.op = std::string(Op::name), .dispatches = {}};
    const uint64_t tokens = tokenCount(op);
    uint64_t rowElements = 0;
    for (const Plane& plane : planesOf(op)) rowElements += plane.headDim;
    if (tokens == 0 || op.into.heads() == 0 || rowElements == 0) return plan;
    plan.dispatches.push_back(makeDispatch(op, place(op, tokens)));
    return plan;
  });
}

}  // namespace mnk
