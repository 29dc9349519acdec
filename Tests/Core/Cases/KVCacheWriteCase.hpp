// One write as a name and a few numbers. Lists of them cover what the op promises; the same lists run on every device
// and through the plan.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/KVCacheWrite.hpp"

namespace mnk::test {

struct KVCacheWriteCase {
  std::string name;
  DType source = DType::f32;
  DType cache = DType::f16;
  KVLayout sourceLayout = KVLayout::tokenMajor;
  KVLayout cacheLayout = KVLayout::headMajor;
  KVWrap wrap = KVWrap::ring;
  uint32_t pinned = 0;

  uint64_t heads = 2;
  uint64_t headDim = 4;
  uint64_t valueHeadDim = 4;  // 0: keys alone
  uint64_t capacity = 4;
  uint64_t sequences = 0;  // 0: the cache has no axis for them

  uint64_t sourceTokens = 1;
  bool isSourceRank2 = false;
  bool isSourceRing = false;
  uint64_t sourceOffset = 0;
  std::optional<uint64_t> tokens = {};
  uint64_t sourceShift = 0;  // bytes past an aligned address
  uint64_t cacheShift = 0;

  uint64_t sequence = 0;
  uint64_t position = 0;

  struct Row {
    uint32_t sequence;
    uint32_t position;
  };
  std::optional<std::vector<Row>> rows = {};
  bool areSequencesTensor = false;
  bool arePositionsTensor = false;
};

// All nine pairs of f32, f16 and bf16, and the equal pairs of the other dtypes.
std::vector<std::pair<DType, DType>> dtypePairs();

std::vector<KVCacheWriteCase> dtypeCases();      // dtypes x layouts x keys alone, with values, with other values
std::vector<KVCacheWriteCase> extentCases();     // head dims, heads, sequences, offsets, rank 2
std::vector<KVCacheWriteCase> wrapCases();       // every phase of small rings, every place of small linear caches
std::vector<KVCacheWriteCase> pinnedCases();     // writes before, across and after pinned slots
std::vector<KVCacheWriteCase> farCases();        // positions around 2^31, 2^32, 2^63
std::vector<KVCacheWriteCase> linearizeCases();  // source rings at every phase
std::vector<KVCacheWriteCase> alignmentCases();  // memory that wide loads and stores cannot use
std::vector<KVCacheWriteCase> rowCases();        // rows from lists and tensors, repeated and out of range
std::vector<KVCacheWriteCase> allCases();

using MakeTensor = std::function<Tensor(DType dtype, const Shape& shape, uint64_t shift)>;

// The op of a case on tensors of the caller's making: keys, values, key cache, value cache, sequences, positions, in
// this order, those that the case has.
KVCacheWrite makeOp(const KVCacheWriteCase& write, const MakeTensor& makeTensor);

// The parts that ops with the same sources, slots and rows share.
Shape sourceShape(const KVCacheWriteCase& write, uint64_t headDim);
std::optional<KVCacheWrite::Rows> makeRows(const KVCacheWriteCase& write, const MakeTensor& makeTensor);

}  // namespace mnk::test
