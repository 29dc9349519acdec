// One write as a name and a few numbers. Those that are drawn run on every device, through the plan and in the fuzzer.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Ops/Common/OperandMemory.hpp"

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

// Valid cases of every kind, with head dims of a few elements.
KVCacheWriteCase drawnWrite(Seeded& random);
inline constexpr uint64_t kDrawnWrites = 4000;  // which together reach every kernel
std::vector<KVCacheWriteCase> drawnWrites(uint64_t count);
std::vector<KVCacheWriteCase> writeEdges();  // what a draw would rarely hit

// The op of a case on tensors of the caller's making, those that the case has: "keys", "values" unless they are fused
// with the keys, "key cache", "value cache", "sequences", "positions".
KVCacheWrite makeOp(const KVCacheWriteCase& write, const MakeNamedTensor& makeTensor);

// As many numbers for every slot of a cache; without `each`, there is no axis for them.
Shape cacheShape(const KVCacheWriteCase& write, std::optional<uint64_t> each = {});
struct KVSources {
  HeadsView keys;
  std::optional<HeadsView> values = {};
  KVLayout layout = KVLayout::tokenMajor;
};
KVSources makeSources(const KVCacheWriteCase& write, const MakeNamedTensor& makeTensor);
std::optional<KVCacheWrite::Rows> makeRows(const KVCacheWriteCase& write, const MakeNamedTensor& makeTensor);

// What ops that store tokens have in common: sources, slots and rows.
template <typename Op>
void setPlaces(Op& op, const KVCacheWriteCase& write, const MakeNamedTensor& makeTensor) {
  const KVSources sources = makeSources(write, makeTensor);
  op.keys = sources.keys;
  op.values = sources.values;
  op.sourceLayout = sources.layout;
  op.into.layout = write.cacheLayout;
  op.into.wrap = write.wrap;
  op.into.pinned = write.pinned;
  op.sourceOffset = write.sourceOffset;
  op.tokens = write.tokens;
  op.sourceIsRing = write.isSourceRing;
  op.sequence = write.sequence;
  op.position = write.position;
  op.rows = makeRows(write, makeTensor);
}

}  // namespace mnk::test
