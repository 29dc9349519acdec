// Attention of a few rows over a cache, computed in f32. A simdgroup computes up to `Rows` rows of one head of the
// cache and loads each tile of keys and values once for all of them. The simdgroups of a threadgroup process the tiles
// of a split round robin. VectorTile.h has the phases of a tile. Dense vectors shorter than `KeyDim` or `ValueDim` are
// zero-padded. In a latent cache, keys and queries are a latent part, which is also the value, followed by `KeyDim`
// elements.
#include "AttentionFinish.h"
#include "AttentionRows.h"
#include "InKernelMerge.h"
#include "VectorTile.h"

template <ushort KeyDim, ushort ValueDim, ushort Rows, bool FewLanes, bool IsLatent>
kernel void flashDecodeVector(MNK_ATTENTION_PARAMETERS) {
  using Shape = VectorShape<KeyDim, ValueDim, Rows, FewLanes, IsLatent>;
  constexpr ushort Chunks = (ValueDim + 127) / 128;
  const AttentionOperands operands{MNK_ATTENTION_ARGUMENTS};
  const AttentionTokens tokens = tokensOf(operands, place);
  constant FlashDecodeSequence& sequence = sequences[tokens.sequence];
  const uint rows = rowsOf(p, tokens);
  const uint firstRow = tokens.rowGroup * Rows;
  const VectorLane at{lane % Shape::Lanes, lane / Shape::Lanes};

  CacheHead head = cacheHead(operands, tokens, keyLength(KeyDim), valueLength(ValueDim));
  if (IsLatent && flashIsOneTensor) {
    joinVectors(head.keys, head.values, head.first);
  }
  threadgroup float* keyCodebook = pool;
  threadgroup float* valueCodebook = pool + codebookFloats(keyCodeBits());
  fillCodebooks(keyCodebook, valueCodebook, simdgroup * 32u + lane, simdgroups * 32u);
  VectorRows<Shape> state;
  startRows(state, operands, tokens, head, firstRow, at);

  const KeyRange split = keysOfSplit(sequence, place.x);
  const uint end = split.end;
  const KeyRange common = commonKeys(operands, tokens, 0, rows - 1u, end);
  VectorTile<Shape> tile;
  uint base = split.begin + simdgroup * Shape::Tile;
  if (base < end) {
    loadVectors<Shape>(tile.keys, p, sequence, head.keys, at, base, end);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // codebooks are filled
  while (base < end) {
    loadVectors<Shape>(tile.values, p, sequence, head.values, at, base, end);
    float scores[Shape::Scores];
    scoreTile(scores, tile, state, head, keyCodebook, valueCodebook);
    const uint next = base + simdgroups * Shape::Tile;
    if (next < end) {  // in flight while probs and results are computed
      loadVectors<Shape>(tile.keys, p, sequence, head.keys, at, next, end);
    }
    const bool isCommon = base >= common.begin && base + Shape::Tile <= common.end;
    sumTransposed<Shape::Scores, Shape::Lanes / 2, 1>(scores, lane);
    maskScores(scores, state, operands, sequence, at, base, end, isCommon);
    updateSoftmax(scores, state);
    accumulateValues(scores, state, tile, head.values, valueCodebook, at, flashHasMask || !isCommon);
    base = next;
  }
  state.rowSum = sumOver(state.rowSum, Shape::Copies, Shape::RowLanes);
  state.rowSum = sumOver(state.rowSum, Shape::Lanes, 32);

  threadgroup_barrier(mem_flags::mem_threadgroup);  // all threads have finished with the codebooks
  threadgroup float2* poolStats = reinterpret_cast<threadgroup float2*>(pool);
  threadgroup float* poolSums = pool + firstPartSum(simdgroups * Rows);
  storeParts(state, poolSums, poolStats, simdgroup, at, lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (uint r = simdgroup; r < Rows; r += simdgroups) {
    if (firstRow + r < rows) {
      const MergedRow<Chunks> row = mergedInThreadgroup<Chunks>(
          poolSums + r * ValueDim, Rows * ValueDim, poolStats + r, Rows, simdgroups, p.finish.lanes, lane);
      finishPart<Chunks>(row, operands, rowIndex(p, tokens, firstRow + r));
    }
  }
#if MNK_HAS_DEVICE_FENCES
  if (flashMergesInKernel) {
    mergeInKernel<Chunks, Rows>(operands, tokens, firstRow, pool);
  }
#endif
}

#define INSTANCE(name, ...) instantiate_kernel("flashDecodeVector_" name, flashDecodeVector, __VA_ARGS__)
#define ROW(keyDim, valueDim, rows) INSTANCE(#keyDim "_" #valueDim "_" #rows, keyDim, valueDim, rows, false, false)
MNK_FLASH_VECTOR_INSTANCES(ROW)
#undef ROW
#define ROW(keyDim, valueDim, rows) \
  INSTANCE("latent_" #keyDim "_" #valueDim "_" #rows, keyDim, valueDim, rows, false, true)
MNK_FLASH_LATENT_INSTANCES(ROW)
#undef ROW
#if MNK_HAS_WIDE_VECTORS
#define ROW(keyDim, valueDim, rows) \
  INSTANCE(#keyDim "_" #valueDim "_" #rows "_fewLanes", keyDim, valueDim, rows, true, false)
MNK_FLASH_FEW_LANES_INSTANCES(ROW)
#undef ROW
#define ROW(keyDim, valueDim, rows) \
  INSTANCE("latent_" #keyDim "_" #valueDim "_" #rows "_fewLanes", keyDim, valueDim, rows, true, true)
MNK_FLASH_LATENT_FEW_LANES_INSTANCES(ROW)
#undef ROW
#endif
#undef INSTANCE
