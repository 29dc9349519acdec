// Attention of a few rows over a cache, computed in f32. A simdgroup computes up to `Rows` rows of one head of the
// cache and loads each tile of keys and values once for all of them. The simdgroups of a threadgroup process the tiles
// of a split round robin. `Lanes` neighboring lanes share a vector, so that a simdgroup loads several vectors at once.
// Dense vectors shorter than `KeyDim` or `ValueDim` are zero-padded. In a latent cache, keys and queries are a latent
// part, which is also the value, followed by `KeyDim` elements.
#include "AttentionFinish.h"
#include "AttentionRows.h"
#include "CacheTile.h"
#include "InKernelMerge.h"

// Neighboring lanes that share a vector: each lane has a multiple of four elements, few enough to keep several rows in
// registers.
constexpr ushort vectorLanes(ushort headDim) {
  return headDim == 32 || headDim == 80     ? 4
         : headDim == 64 || headDim == 96   ? 8
         : headDim == 256 || headDim == 512 ? 32
                                            : 16;
}
// Vectors per lane in a tile: as many as fit in registers next to queries and results. Some GPUs have only 128
// registers per thread.
constexpr ushort vectorSteps(ushort elements, ushort rows) {
  return rows == 2 || rows == 4 || elements > 20 ? 2 : rows == 8 || elements > 8 ? 4 : 8;
}

// `FewLanes` is for devices with expensive shuffles and many registers, or a stack that is as fast as registers.
template <ushort KeyDim, ushort ValueDim, ushort Rows, bool FewLanes, bool IsLatent>
kernel void flashDecodeVector(
    constant FlashDecodeParams& p [[buffer(kFlashDecodeParams)]],
    constant FlashDecodeSequence* sequences [[buffer(kFlashDecodeSequences)]],
    device const uchar* queries [[buffer(kFlashDecodeQueries)]], device const uchar* keys [[buffer(kFlashDecodeKeys)]],
    device const uchar* values [[buffer(kFlashDecodeValues)]],
    device const uchar* keyScales [[buffer(kFlashDecodeKeyScales), function_constant(kvHasQuantizedKeys)]],
    device const uchar* valueScales [[buffer(kFlashDecodeValueScales), function_constant(kvHasQuantizedValues)]],
    device const float* keyMeans [[buffer(kFlashDecodeKeyMeans), function_constant(kvHasKeyMeans)]],
    device const float* valueMeans [[buffer(kFlashDecodeValueMeans), function_constant(kvHasValueMeans)]],
    device const float* channelScales [[buffer(kFlashDecodeChannelScales), function_constant(kvHasChannelScales)]],
    device const uchar* mask [[buffer(kFlashDecodeMask), function_constant(flashHasMask)]],
    device const float* slopes [[buffer(kFlashDecodeSlopes), function_constant(flashHasSlopes)]],
    device const float* sinks [[buffer(kFlashDecodeSinks), function_constant(flashHasSinks)]],
    device uchar* into [[buffer(kFlashDecodeInto), function_constant(flashWritesResults)]],
    device float* logSumExp [[buffer(kFlashDecodeLogSumExp), function_constant(flashHasLogSumExp)]],
    device float* sums [[buffer(kFlashDecodeSums), function_constant(flashWritesSums)]],
    device float* stats [[buffer(kFlashDecodeStats), function_constant(flashWritesSums)]],
    device atomic_float* splitSums [[buffer(kFlashDecodePartSums), function_constant(flashMergesInKernel)]],
    device atomic_float* splitStats [[buffer(kFlashDecodePartStats), function_constant(flashMergesInKernel)]],
    device atomic_uint* arrived [[buffer(kFlashDecodeArrived), function_constant(flashMergesInKernel)]],
    constant FlashDecodeRun* runs [[buffer(kFlashDecodeRuns), function_constant(flashIsRagged)]],
    threadgroup float* pool [[threadgroup_memory(0)]], uint3 place [[threadgroup_position_in_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr ushort Longest = KeyDim > ValueDim ? KeyDim : ValueDim;
  constexpr ushort Lanes = FewLanes ? (Longest >= 512 && Rows == 1 ? 2 : Rows) : IsLatent ? 16 : vectorLanes(KeyDim);
  constexpr ushort Groups = 32 / Lanes;  // vectors loaded at once
  constexpr ushort KeyElements = KeyDim / Lanes;
  constexpr ushort ValueElements = ValueDim / Lanes;
  constexpr ushort Both = KeyElements | ValueElements;
  // Elements per vector operation.
  constexpr ushort Width = !FewLanes ? 4 : Both % 16 == 0 ? 16 : Both % 8 == 0 ? 8 : 4;
  constexpr ushort Steps = FewLanes ? (Lanes == 1 ? 2 : 8) : vectorSteps(Longest / Lanes, Rows);
  constexpr ushort Tile = Steps * Groups;
  constexpr ushort Scores = Rows * Steps;                         // partial scores per lane, before the sum over lanes
  constexpr ushort Own = Scores > Lanes ? Scores / Lanes : 1;     // complete scores per lane, after it
  constexpr ushort Copies = Scores < Lanes ? Lanes / Scores : 1;  // lanes that hold the same complete score
  constexpr ushort RowLanes = Lanes / Rows;                       // lanes that hold complete scores of one row
  constexpr ushort Chunks = (ValueDim + 127) / 128;

  const AttentionTokens tokens = tokensOf(p, runs, place);
  constant FlashDecodeSequence& sequence = sequences[tokens.sequence];
  const uint kvHead = place.y;
  const uint rows = p.group * tokens.count;
  const uint firstRow = tokens.rowGroup * Rows;
  const uint at = lane % Lanes;
  const uint groupIndex = lane / Lanes;

  const ulong headBase = firstVector(p, sequence, kvHead);
  CacheVectors keyVectors = vectorsFrom(
      keys, keyScales, headBase, keyCodeBits(), keyLength(KeyDim), p.keyCodeBytes, p.keyInverseRoot, p.keyScaleFactor);
  CacheVectors valueVectors = vectorsFrom(
      values, valueScales, headBase, valueCodeBits(), valueLength(ValueDim), p.valueCodeBytes, p.finish.inverseRoot,
      p.valueScaleFactor);
  if (IsLatent && flashIsOneTensor) {
    joinVectors(keyVectors, valueVectors, headBase);
  }
  threadgroup float* keyCodebook = pool;
  threadgroup float* valueCodebook = pool;
  if (kvHasQuantizedKeys) {
    valueCodebook = pool + (1u << kvKeyBits);
    fillCodebook(keyCodebook, kvKeyBits, simdgroup * 32u + lane, simdgroups * 32u);
  }
  if (kvHasQuantizedValues) {
    fillCodebook(valueCodebook, kvValueBits, simdgroup * 32u + lane, simdgroups * 32u);
  }

  floats<Width> query[Rows][KeyElements / Width];
  floats<Width> latentQuery[Rows][IsLatent ? ValueElements / Width : 1];
  floats<Width> result[Rows][ValueElements / Width];
  float biases[Rows];
  MNK_UNROLL
  for (ushort r = 0; r < Rows; ++r) {
    const AttentionRow row = attentionRow(p, sequence, tokens, kvHead, min(firstRow + r, rows - 1u), slopes);
    thread float4* q = reinterpret_cast<thread float4*>(query[r]);
    loadQuery<KeyElements / 4>(q, queries, row.query + (IsLatent ? ValueDim : 0u), keyVectors.headDim, Lanes, lane);
    biases[r] = rotateQuery<KeyElements / 4>(
        q, p, kvHead, keyVectors.headDim, Lanes, lane, p.queryScale, keyMeans, channelScales);
    if (IsLatent) {
      thread float4* latent = reinterpret_cast<thread float4*>(latentQuery[r]);
      loadQuery<ValueElements / 4>(latent, queries, row.query, ValueDim, Lanes, lane);
      biases[r] += rotateLatent<ValueElements / 4>(latent, p, kvHead, ValueDim, Lanes, lane, p.queryScale, valueMeans);
    }
    MNK_UNROLL
    for (ushort i = 0; i < ValueElements / Width; ++i) {
      result[r][i] = floats<Width>(0.0f);
    }
  }

  // This lane gets the complete scores of row ownRow for steps [ownStep, ownStep + Own).
  const uint ownRow = at / RowLanes;
  const uint ownStep = at % RowLanes / Copies * Own;
  const AttentionRow row = attentionRow(p, sequence, tokens, kvHead, min(firstRow + ownRow, rows - 1u), slopes);
  float bias = 0.0f;
  if (hasBias(IsLatent)) {
    MNK_UNROLL
    for (ushort r = 0; r < Rows; ++r) {
      bias = r == ownRow ? biases[r] : bias;
    }
  }

  const uint begin = min(sequence.firstKey + place.x * sequence.splitKeys, sequence.endKey);
  const uint end = min(begin + sequence.splitKeys, sequence.endKey);
  // All rows see all keys in [commonBegin, commonEnd), because rows are ordered by position, so their scores need no
  // masking.
  const AttentionRow oldest = attentionRow(p, sequence, tokens, kvHead, 0, slopes);
  const AttentionRow newest = attentionRow(p, sequence, tokens, kvHead, rows - 1u, slopes);
  const uint commonBegin = newest.firstKey;
  const uint commonEnd = min(end, oldest.endKey);

  float largest = kInitialRowMax;
  float sum = 0.0f;
  CachePiece<KeyElements> keyPieces[Steps];
  CachePiece<ValueElements> valuePieces[Steps];
  uint base = begin + simdgroup * Tile;
  if (base < end) {
    MNK_UNROLL
    for (ushort t = 0; t < Steps; ++t) {
      const uint key = min(base + t * Groups + groupIndex, end - 1u);
      loadPiece(keyPieces[t], keyVectors, vectorOfKey(p, sequence, key), at * KeyElements);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // codebooks are filled
  while (base < end) {
    MNK_UNROLL
    for (ushort t = 0; t < Steps; ++t) {
      const uint key = min(base + t * Groups + groupIndex, end - 1u);
      loadPiece(valuePieces[t], valueVectors, vectorOfKey(p, sequence, key), at * ValueElements);
      MNK_PREFETCH(valueVectors.vectors + (vectorOfKey(p, sequence, key) + Tile) * valueVectors.bytes + at * 64u);
    }

    float scores[Scores];
    MNK_UNROLL
    for (ushort t = 0; t < Steps; ++t) {
      decltype(productsOf(query[0][0], query[0][0])) products[Rows];
      MNK_UNROLL
      for (ushort i = 0; i < KeyElements / Width; ++i) {
        const floats<Width> x = floatsOfPiece<Width>(keyPieces[t], i, keyCodeBits(), keyCodebook);
        MNK_UNROLL
        for (ushort r = 0; r < Rows; ++r) {
          products[r] = i == 0 ? productsOf(query[r][i], x) : addedProducts(products[r], query[r][i], x);
        }
      }
      const float scale = kvHasQuantizedKeys ? codebookScale(keyPieces[t].scale, keyVectors) : 1.0f;
      MNK_UNROLL
      for (ushort r = 0; r < Rows; ++r) {
        scores[r * Steps + t] = kvHasQuantizedKeys ? totalOf(products[r]) * scale : totalOf(products[r]);
      }
      if (IsLatent) {
        MNK_UNROLL
        for (ushort i = 0; i < ValueElements / Width; ++i) {
          const floats<Width> x = floatsOfPiece<Width>(valuePieces[t], i, valueCodeBits(), valueCodebook);
          MNK_UNROLL
          for (ushort r = 0; r < Rows; ++r) {
            products[r] = i == 0 ? productsOf(latentQuery[r][i], x) : addedProducts(products[r], latentQuery[r][i], x);
          }
        }
        const float latentScale = kvHasQuantizedValues ? codebookScale(valuePieces[t].scale, valueVectors) : 1.0f;
        MNK_UNROLL
        for (ushort r = 0; r < Rows; ++r) {
          scores[r * Steps + t] += kvHasQuantizedValues ? totalOf(products[r]) * latentScale : totalOf(products[r]);
        }
      }
    }
    const uint next = base + simdgroups * Tile;
    if (next < end) {  // in flight while probs and results are computed
      MNK_UNROLL
      for (ushort t = 0; t < Steps; ++t) {
        const uint key = min(next + t * Groups + groupIndex, end - 1u);
        loadPiece(keyPieces[t], keyVectors, vectorOfKey(p, sequence, key), at * KeyElements);
        MNK_PREFETCH(keyVectors.vectors + (vectorOfKey(p, sequence, key) + Tile) * keyVectors.bytes + at * 64u);
      }
    }
    sumTransposed<Scores, Lanes / 2, 1>(scores, lane);

    const bool isCommon = base >= commonBegin && base + Tile <= commonEnd;
    float top = largest;
    MNK_UNROLL
    for (ushort i = 0; i < Own; ++i) {
      const uint key = base + (ownStep + i) * Groups + groupIndex;
      const bool isSeen = isCommon || (key < end && isSeenBy(p, row, key));
      float score = kMaskedScore;
      if (isSeen) {
        score = scoreOf(p, sequence, row, key, scores[i] + bias, mask);
      }
      scores[i] = score;
      top = max(top, score);
    }
    top = largestOver(top, 1, RowLanes);
    top = largestOver(top, Lanes, 32);
    if (simd_any(top > largest)) {
      const float fade = fast::exp2(largest - top);
      largest = top;
      sum *= fade;
      float fades[Rows];
      gatherLanes<Rows>(fades, fade, 0, RowLanes);
      MNK_UNROLL
      for (ushort r = 0; r < Rows; ++r) {
        MNK_UNROLL
        for (ushort i = 0; i < ValueElements / Width; ++i) {
          result[r][i] *= fades[r];
        }
      }
    }
    MNK_UNROLL
    for (ushort i = 0; i < Own; ++i) {
      scores[i] = fast::exp2(scores[i] - largest);
      sum += scores[i];
    }
    if (FewLanes) {
      MNK_GATHER_SHARES(scores, Own, Lanes);  // from all lanes that share a vector, in lane order
    }

    const bool mayBeZero = flashHasMask || !isCommon;
    MNK_UNROLL
    for (ushort t = 0; t < Steps; ++t) {
      float weights[Rows];
      bool counts[Rows];
      const float scale = kvHasQuantizedValues ? codebookScale(valuePieces[t].scale, valueVectors) : 1.0f;
      if (!FewLanes) {
        gatherLanes<Rows>(weights, scores[t % Own], ushort(groupIndex * Lanes + t / Own * Copies), RowLanes);
      }
      MNK_UNROLL
      for (ushort r = 0; r < Rows; ++r) {
        weights[r] = FewLanes ? scores[r * Steps + t] : weights[r];
        counts[r] = !mayBeZero || weights[r] != 0.0f;  // a value with prob 0 may be NaN
        weights[r] = kvHasQuantizedValues ? weights[r] * scale : weights[r];
      }
      MNK_UNROLL
      for (ushort i = 0; i < ValueElements / Width; ++i) {
        const floats<Width> x = floatsOfPiece<Width>(valuePieces[t], i, valueCodeBits(), valueCodebook);
        MNK_UNROLL
        for (ushort r = 0; r < Rows; ++r) {
          // Selects between copies, because selecting between array elements would spill the array from registers.
          const floats<Width> before = result[r][i];
          const floats<Width> after = fma(floats<Width>(weights[r]), x, before);
          result[r][i] = counts[r] ? after : before;
        }
      }
    }
    base = next;
  }
  sum = sumOver(sum, Copies, RowLanes);
  sum = sumOver(sum, Lanes, 32);

  threadgroup_barrier(mem_flags::mem_threadgroup);  // all threads have finished with the codebooks
  float flat[Rows * ValueElements];
  MNK_UNROLL
  for (ushort i = 0; i < Rows * ValueElements / 4; ++i) {
    const float4 x = reinterpret_cast<thread const float4*>(result[i / (ValueElements / 4)])[i % (ValueElements / 4)];
    flat[4 * i] = x.x;
    flat[4 * i + 1] = x.y;
    flat[4 * i + 2] = x.z;
    flat[4 * i + 3] = x.w;
  }
  sumTransposed<Rows * ValueElements, 16, Lanes>(flat, lane);
  constexpr ushort Parts = transposedParts(Rows * ValueElements, Groups);
  constexpr ushort Kept = Rows * ValueElements / Parts;
  threadgroup float2* partStats = reinterpret_cast<threadgroup float2*>(pool);
  threadgroup float* partSums = pool + firstPartSum(simdgroups * Rows);
  if (groupIndex % (Groups / Parts) == 0u) {
    MNK_UNROLL
    for (ushort i = 0; i < Kept; ++i) {
      const uint index = groupIndex / (Groups / Parts) * Kept + i;
      const uint r = index / ValueElements;
      partSums[(simdgroup * Rows + r) * ValueDim + at * ValueElements + index % ValueElements] = flat[i];
    }
  }
  if (lane < Lanes && at % RowLanes == 0u) {
    partStats[simdgroup * Rows + ownRow] = float2(largest, sum);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  const AttentionOutputs out{valueMeans, sinks, into, logSumExp, sums, stats, splitSums, splitStats, arrived};
  for (uint r = simdgroup; r < Rows; r += simdgroups) {
    if (firstRow + r < rows) {
      finishPart<Chunks>(
          mergedInThreadgroup<Chunks>(
              partSums + r * ValueDim, Rows * ValueDim, partStats + r, Rows, simdgroups, p.finish.lanes, lane),
          p, rowIndex(p, tokens, kvHead, firstRow + r), place.x, lane, out);
    }
  }
#if MNK_HAS_DEVICE_FENCES
  if (flashMergesInKernel) {
    mergeInKernel<Chunks, Rows>(p, tokens, place, firstRow, pool, simdgroups, simdgroup, lane, out);
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
