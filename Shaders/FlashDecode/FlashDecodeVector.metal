// Attention of a few rows over a cache, computed in f32. A simdgroup computes up to `Rows` rows of one head of the
// cache and loads each tile of keys and values once for all of them. The simdgroups of a threadgroup process the tiles
// of a split round robin. Dense vectors shorter than `KeyDim` or `ValueDim` are zero-padded. In a latent cache, keys
// and queries are a latent part, which is also the value, followed by `KeyDim` elements.
#include "AttentionRows.h"
#include "CacheTile.h"
#include "InKernelMerge.h"
#include "OnlineSoftmax.h"

// The rows of the vector kernel, and the phases of a tile of its keys and values: load, score, softmax, values. `Lanes`
// neighboring lanes share a vector, and `Groups` groups of lanes have a vector each, in every one of `Steps` steps.

// Neighboring lanes that share a vector: each lane has a multiple of four elements, few enough to keep several rows in
// registers.
constexpr ushort vectorLanes(ushort headDim) {
  return headDim == 32 || headDim == 80     ? 4
         : headDim == 64 || headDim == 96   ? 8
         : headDim == 256 || headDim == 512 ? 32
                                            : 16;
}
// Vectors per lane in a tile: the number that fits in registers next to queries and results. Some GPUs have only 128
// registers per thread.
constexpr ushort vectorSteps(ushort elements, ushort rows) {
  return rows == 2 || rows == 4 || elements > 20 ? 2 : rows == 8 || elements > 8 ? 4 : 8;
}

// How the lanes of a simdgroup share vectors and rows. `Few` is for devices with expensive shuffles and many registers,
// or a stack that is as fast as registers.
template <ushort KeyDim, ushort ValueDim, ushort RowCount, bool Few, bool Latent>
struct VectorShape {
  static constexpr constant bool FewLanes = Few;
  static constexpr constant bool IsLatent = Latent;
  static constexpr constant ushort Rows = RowCount;
  static constexpr constant ushort Longest = KeyDim > ValueDim ? KeyDim : ValueDim;
  static constexpr constant ushort Lanes = Few      ? (Longest >= 512 && Rows == 1 ? 2 : Rows)
                                           : Latent ? 16
                                                    : vectorLanes(KeyDim);
  static constexpr constant ushort Groups = 32 / Lanes;  // vectors loaded at once
  static constexpr constant ushort KeyElements = KeyDim / Lanes;
  static constexpr constant ushort ValueElements = ValueDim / Lanes;
  static constexpr constant ushort Both = KeyElements | ValueElements;
  static constexpr constant ushort Width = !Few ? 4 : Both % 16 == 0 ? 16 : Both % 8 == 0 ? 8 : 4;  // of operations
  static constexpr constant ushort Steps = Few ? (Lanes == 1 ? 2 : 8) : vectorSteps(Longest / Lanes, Rows);
  static constexpr constant ushort Tile = Steps * Groups;
  static constexpr constant ushort Scores = Rows * Steps;                         // per lane, before the sum over lanes
  static constexpr constant ushort Own = Scores > Lanes ? Scores / Lanes : 1;     // complete scores per lane, after it
  static constexpr constant ushort Copies = Scores < Lanes ? Lanes / Scores : 1;  // lanes with the same complete score
  static constexpr constant ushort RowLanes = Lanes / Rows;  // lanes that hold complete scores of one row
};

// The index of a lane among those that share a vector, and the index of their group.
struct VectorLane {
  uint part;
  uint group;
};

// The rows of a simdgroup: a lane's parts of queries and results, and the softmax so far of the row whose complete
// scores the lane gets.
template <typename Shape>
struct VectorRows {
  floats<Shape::Width> query[Shape::Rows][Shape::KeyElements / Shape::Width];
  floats<Shape::Width> latentQuery[Shape::Rows][Shape::ValueElements / Shape::Width];  // of latent caches only
  floats<Shape::Width> result[Shape::Rows][Shape::ValueElements / Shape::Width];
  AttentionRow row;
  float bias;  // added to its scores for the mean of keys
  float rowMax;
  float rowSum;
};

template <typename Shape>
struct VectorTile {
  CachePiece<Shape::KeyElements> keys[Shape::Steps];
  CachePiece<Shape::ValueElements> values[Shape::Steps];
};

// Loads and rotates queries, and starts the softmax of their rows. Rows past the last one repeat it.
template <typename Shape>
inline void startRows(
    thread VectorRows<Shape>& rows, thread const AttentionOperands& operands, AttentionTokens tokens, CacheHead head,
    uint firstRow, VectorLane at) {
  const uint lane = operands.lane;
  constexpr ushort KeyChunks = Shape::KeyElements / 4;
  constexpr ushort LatentChunks = Shape::ValueElements / 4;
  constexpr ushort LatentDim = Shape::IsLatent ? Shape::ValueElements * Shape::Lanes : 0;
  const float scale = operands.p.queryScale;
  float biases[Shape::Rows];
  MNK_UNROLL
  for (ushort r = 0; r < Shape::Rows; ++r) {
    const ulong start = queryStart(operands.p, tokens, min(firstRow + r, rowsOf(operands.p, tokens) - 1u));
    thread float4* query = reinterpret_cast<thread float4*>(rows.query[r]);
    loadQuery<KeyChunks>(query, operands.queries, start + LatentDim, head.keys.headDim, Shape::Lanes, lane);
    biases[r] = rotateQuery<KeyChunks>(query, operands, tokens.kvHead, head.keys.headDim, Shape::Lanes, lane, scale);
    if (Shape::IsLatent) {
      thread float4* latent = reinterpret_cast<thread float4*>(rows.latentQuery[r]);
      loadQuery<LatentChunks>(latent, operands.queries, start, LatentDim, Shape::Lanes, lane);
      biases[r] += rotateLatent<LatentChunks>(latent, operands, tokens.kvHead, LatentDim, Shape::Lanes, lane, scale);
    }
    MNK_UNROLL
    for (ushort i = 0; i < Shape::ValueElements / Shape::Width; ++i) {
      rows.result[r][i] = floats<Shape::Width>(0.0f);
    }
  }
  const uint ownRow = at.part / Shape::RowLanes;
  rows.row = attentionRow(operands, tokens, min(firstRow + ownRow, rowsOf(operands.p, tokens) - 1u));
  rows.rowMax = kInitialRowMax;
  rows.rowSum = 0.0f;
  rows.bias = 0.0f;
  if (hasBias(Shape::IsLatent)) {
    MNK_UNROLL
    for (ushort r = 0; r < Shape::Rows; ++r) {
      rows.bias = r == ownRow ? biases[r] : rows.bias;
    }
  }
}

// Loads the keys or the values of a tile. Past `end`, the last one is loaded again and its score is masked: without a
// branch, the compiler can hoist the loads.
template <typename Shape, ushort Elements>
inline void loadVectors(
    thread CachePiece<Elements>* pieces, constant FlashDecodeParams& p, constant FlashDecodeSequence& sequence,
    CacheVectors from, VectorLane at, uint base, uint end) {
  MNK_UNROLL
  for (ushort t = 0; t < Shape::Steps; ++t) {
    const ulong vector = vectorOfKey(p, sequence, min(base + t * Shape::Groups + at.group, end - 1u));
    loadPiece(pieces[t], from, vector, at.part * Elements);
    MNK_PREFETCH(from.vectors + (vector + Shape::Tile) * from.bytes + at.part * 64u);
  }
}

// Products of a lane's parts of queries and of one vector.
template <typename Shape, ushort Elements>
inline void multiplyQueries(
    thread float* products, thread const floats<Shape::Width> (&query)[Shape::Rows][Elements / Shape::Width],
    thread const CachePiece<Elements>& piece, CacheVectors from, threadgroup const float* codebook) {
  decltype(productsOf(query[0][0], query[0][0])) sums[Shape::Rows];
  MNK_UNROLL
  for (ushort i = 0; i < Elements / Shape::Width; ++i) {
    const floats<Shape::Width> x = floatsOfPiece<Shape::Width>(piece, i, from.bits, codebook);
    MNK_UNROLL
    for (ushort r = 0; r < Shape::Rows; ++r) {
      sums[r] = i == 0 ? productsOf(query[r][i], x) : addedProducts(sums[r], query[r][i], x);
    }
  }
  const float scale = from.bits != 0u ? codebookScale(piece.scale, from) : 1.0f;
  MNK_UNROLL
  for (ushort r = 0; r < Shape::Rows; ++r) {
    products[r] = from.bits != 0u ? totalOf(sums[r]) * scale : totalOf(sums[r]);
  }
}
// The same for a tile, without the sum over the lanes that share a vector. In a latent cache, values are keys too.
template <typename Shape>
inline void scoreTile(
    thread float* scores, thread const VectorTile<Shape>& tile, thread const VectorRows<Shape>& rows, CacheHead head,
    threadgroup const float* keyCodebook, threadgroup const float* valueCodebook) {
  MNK_UNROLL
  for (ushort t = 0; t < Shape::Steps; ++t) {
    float products[Shape::Rows];
    multiplyQueries<Shape>(products, rows.query, tile.keys[t], head.keys, keyCodebook);
    float latentProducts[Shape::Rows] = {};
    if (Shape::IsLatent) {
      multiplyQueries<Shape>(latentProducts, rows.latentQuery, tile.values[t], head.values, valueCodebook);
    }
    MNK_UNROLL
    for (ushort r = 0; r < Shape::Rows; ++r) {
      scores[r * Shape::Steps + t] = Shape::IsLatent ? products[r] + latentProducts[r] : products[r];
    }
  }
}

// Turns a lane's complete products into scores: applies the score options, and hides keys that the row does not see.
template <typename Shape>
inline void maskScores(
    thread float* scores, thread const VectorRows<Shape>& rows, thread const AttentionOperands& operands,
    constant FlashDecodeSequence& sequence, VectorLane at, uint base, uint end, bool isCommon) {
  const uint ownStep = at.part % Shape::RowLanes / Shape::Copies * Shape::Own;  // the first of its `Own` ones
  MNK_UNROLL
  for (ushort i = 0; i < Shape::Own; ++i) {
    const uint key = base + (ownStep + i) * Shape::Groups + at.group;
    const bool isSeen = isCommon || (key < end && isSeenBy(operands.p, rows.row, key));
    float score = kMaskedScore;
    if (isSeen) {
      score = scoreOf(operands, sequence, rows.row, key, scores[i] + rows.bias);
    }
    scores[i] = score;
  }
}

// Turns scores into probs and adds them to the sum of their row.
template <typename Shape>
inline void updateSoftmax(thread float* scores, thread VectorRows<Shape>& rows) {
  float newMax = rows.rowMax;
  MNK_UNROLL
  for (ushort i = 0; i < Shape::Own; ++i) {
    newMax = max(newMax, scores[i]);
  }
  newMax = largestOver(newMax, 1, Shape::RowLanes);
  newMax = largestOver(newMax, Shape::Lanes, 32);
  if (simd_any(newMax > rows.rowMax)) {
    const float rescale = fast::exp2(rows.rowMax - newMax);
    rows.rowMax = newMax;
    rows.rowSum *= rescale;
    float rescales[Shape::Rows];
    gatherLanes<Shape::Rows>(rescales, rescale, 0, Shape::RowLanes);
    MNK_UNROLL
    for (ushort r = 0; r < Shape::Rows; ++r) {
      MNK_UNROLL
      for (ushort i = 0; i < Shape::ValueElements / Shape::Width; ++i) {
        rows.result[r][i] *= rescales[r];
      }
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < Shape::Own; ++i) {
    scores[i] = fast::exp2(scores[i] - rows.rowMax);
    rows.rowSum += scores[i];
  }
}

// Adds the values of a tile to results, weighted by probs. If `mayBeZero`, a value with prob 0 may be NaN.
template <typename Shape>
inline void accumulateValues(
    thread float* probs, thread VectorRows<Shape>& rows, thread const VectorTile<Shape>& tile, CacheVectors from,
    threadgroup const float* codebook, VectorLane at, bool mayBeZero) {
  if (Shape::FewLanes) {
    MNK_GATHER_SHARES(probs, Shape::Own, Shape::Lanes);  // from all lanes that share a vector, in lane order
  }
  MNK_UNROLL
  for (ushort t = 0; t < Shape::Steps; ++t) {
    float prob[Shape::Rows];
    bool counts[Shape::Rows];
    const float scale = from.bits != 0u ? codebookScale(tile.values[t].scale, from) : 1.0f;
    if (!Shape::FewLanes) {
      const ushort first = ushort(at.group * Shape::Lanes + t / Shape::Own * Shape::Copies);
      gatherLanes<Shape::Rows>(prob, probs[t % Shape::Own], first, Shape::RowLanes);
    }
    MNK_UNROLL
    for (ushort r = 0; r < Shape::Rows; ++r) {
      prob[r] = Shape::FewLanes ? probs[r * Shape::Steps + t] : prob[r];
      counts[r] = !mayBeZero || prob[r] != 0.0f;
      prob[r] = from.bits != 0u ? prob[r] * scale : prob[r];
    }
    MNK_UNROLL
    for (ushort i = 0; i < Shape::ValueElements / Shape::Width; ++i) {
      const floats<Shape::Width> x = floatsOfPiece<Shape::Width>(tile.values[t], i, from.bits, codebook);
      MNK_UNROLL
      for (ushort r = 0; r < Shape::Rows; ++r) {
        // Selects between copies, because selecting between array elements would spill the array from registers.
        const floats<Shape::Width> before = rows.result[r][i];
        const floats<Shape::Width> after = fma(floats<Shape::Width>(prob[r]), x, before);
        rows.result[r][i] = counts[r] ? after : before;
      }
    }
  }
}

// Sums the results of all groups, and stores them as the simdgroup's parts of its rows. A group stores a share of them.
template <typename Shape>
inline void storeParts(
    thread const VectorRows<Shape>& rows, threadgroup float* sums, threadgroup float2* stats, uint simdgroup,
    VectorLane at, uint lane) {
  constexpr ushort Elements = Shape::ValueElements;
  constexpr ushort ValueDim = Elements * Shape::Lanes;
  float flat[Shape::Rows * Elements];
  MNK_UNROLL
  for (ushort i = 0; i < Shape::Rows * Elements / 4; ++i) {
    const float4 x = reinterpret_cast<thread const float4*>(rows.result[i / (Elements / 4)])[i % (Elements / 4)];
    flat[4 * i] = x.x;
    flat[4 * i + 1] = x.y;
    flat[4 * i + 2] = x.z;
    flat[4 * i + 3] = x.w;
  }
  sumTransposed<Shape::Rows * Elements, 16, Shape::Lanes>(flat, lane);
  constexpr ushort Shares = transposedParts(Shape::Rows * Elements, Shape::Groups);
  constexpr ushort Kept = Shape::Rows * Elements / Shares;
  if (at.group % (Shape::Groups / Shares) == 0u) {
    MNK_UNROLL
    for (ushort i = 0; i < Kept; ++i) {
      const uint index = at.group / (Shape::Groups / Shares) * Kept + i;
      const uint part = simdgroup * Shape::Rows + index / Elements;
      sums[part * ValueDim + at.part * Elements + index % Elements] = flat[i];
    }
  }
  if (lane < Shape::Lanes && at.part % Shape::RowLanes == 0u) {
    stats[simdgroup * Shape::Rows + at.part / Shape::RowLanes] = float2(rows.rowMax, rows.rowSum);
  }
}

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
