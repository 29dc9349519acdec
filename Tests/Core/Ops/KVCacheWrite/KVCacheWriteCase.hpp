// One write as a name and a few numbers, and what it must do. Cases that are drawn run on every device, through the
// plan and in the fuzzer.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Ops/Common/OpRun.hpp"

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

  // Keys and values in the columns of one tensor, as a fused projection leaves them.
  struct Fused {
    uint64_t lead = 0;      // elements before the keys
    uint64_t between = 0;   // between keys and values
    uint64_t tail = 0;      // after the values
    bool isShared = false;  // values are the first elements of the keys' columns, or the other way round
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

struct Place {
  uint64_t sequence;
  uint64_t slot;
  auto operator<=>(const Place&) const = default;
};

// The source token that each place ends up with: later tokens replace earlier ones.
std::map<Place, uint64_t> winners(const KVCacheWrite& op, const ReadTensor& before);
// Which of a plane's vectors a head has at a place.
uint64_t cacheRow(const KVCacheView& cache, const Place& place, uint64_t head);
// How many tokens the source holds, in all of its sequences.
uint64_t sourceTokens(const KVCacheWrite& op);
// The first element of a vector of keys or values in their tensor.
uint64_t sourceElement(const HeadsView& source, KVLayout layout, uint64_t token, uint64_t head);

// The numbers of a case's rows, where they are tensors, by the operand's name; none for other operands.
std::vector<std::byte> rowNumbers(const KVCacheWriteCase& write, std::string_view name);
using KVCacheWriteRun = OpRun<KVCacheWriteCase>;
void fill(KVCacheWriteRun& run, const KVCacheWriteCase& write, Seeded& random);
// The cache of a call that broke no rule holds what the definition says, token after token. Returns how many bytes are
// written.
uint64_t expectWritten(const KVCacheWrite& op, const OperandMemory& memory);
void expectOutcome(const KVCacheWriteRun& run);

}  // namespace mnk::test
