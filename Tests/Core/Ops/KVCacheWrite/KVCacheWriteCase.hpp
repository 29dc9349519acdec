// One write as a name and a few numbers. Lists of them cover what the op promises; the same lists run on every device
// and through the plan.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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

  uint64_t sourceTokens = 1;     // of one sequence
  uint64_t sourceSequences = 0;  // 0: the source has no axis for them
  bool isSourceRank2 = false;
  bool isLayoutOfViews = false;  // the views say the source's layout, and the op does not
  bool isSourceRing = false;
  uint64_t sourceOffset = 0;
  std::optional<uint64_t> tokens = {};
  uint64_t sourceShift = 0;  // bytes past an aligned address
  uint64_t cacheShift = 0;

  // Keys and values in one tensor.
  struct Fused {
    // columns: both in the columns of a fused projection. shared: the same, where values are the first elements of the
    // keys' columns, or the other way round. apart: keys in columns, values head-major behind all of them.
    enum class Form : uint8_t { columns, shared, apart } form = Form::columns;
    uint64_t lead = 0;     // elements before the keys
    uint64_t between = 0;  // between keys and values
    uint64_t tail = 0;     // after the values
  };
  std::optional<Fused> fused = {};

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
std::vector<KVCacheWriteCase> sourceCases();     // sources with sequences, and views of a part of a tensor
std::vector<KVCacheWriteCase> allCases();

using MakeTensor = std::function<Tensor(DType dtype, const Shape& shape, uint64_t shift)>;

// The op of a case on tensors of the caller's making: keys, values unless they are fused with the keys, key cache,
// value cache, sequences, positions, in this order, those that the case has.
KVCacheWrite makeOp(const KVCacheWriteCase& write, const MakeTensor& makeTensor);

// The parts that ops with the same sources, slots and rows share.
struct KVSources {
  HeadsView keys;
  std::optional<HeadsView> values = {};
  KVLayout layout = KVLayout::tokenMajor;
};
KVSources makeSources(const KVCacheWriteCase& write,
                      const std::function<Tensor(std::string_view name, const Shape& shape)>& makeTensor);
std::optional<KVCacheWrite::Rows> makeRows(const KVCacheWriteCase& write, const MakeTensor& makeTensor);

}  // namespace mnk::test
