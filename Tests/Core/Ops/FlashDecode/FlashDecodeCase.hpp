// One call of FlashDecode as a name and a few numbers. Those that are drawn cover what the op promises: they run on
// every device, through the plan, through the bindings and in the fuzzer.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/Generated/mnk_flash_decode.h"
#include "Ops/Common/OpRun.hpp"
#include "Ops/FlashDecode/FlashDecodeReference.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"

namespace mnk::test {

inline constexpr KVLayout kEveryLayout[] = {KVLayout::headMajor, KVLayout::tokenMajor};
inline constexpr DType kEveryFloat[] = {DType::f32, DType::f16, DType::bf16};

struct MaskCase {
  DType dtype = DType::f32;
  uint32_t rank = 2;
  bool servesAllSequences = false;  // axes of 1
  bool servesAllHeads = false;
  bool servesAllRows = false;
  uint64_t extraKeys = 0;       // beyond those of the longest sequence
  bool hasHoles = true;         // some elements are -inf, and some keys for all rows
  bool hasEmptyRows = false;    // some rows are -inf throughout
  bool hasFiniteHoles = false;  // holes are the lowest number of the dtype
  float offset = 0;             // added to all other elements

  bool isExtreme() const { return hasFiniteHoles || offset != 0; }
};

// A number put where only some rows can see it, in an element of a vector, or in all of them.
struct SpecialElement {
  bool isKey = true;
  uint64_t sequence = 0;  // of the queries
  uint64_t kvHead = 0;
  uint64_t key = 0;
  std::optional<uint64_t> element = {};
  float number = 0;
};

// Where queries lie: in a tensor of their axes, token-major or head-major, in columns of a wider one, or with gaps.
enum class QueryPlaces { tokenMajor, headMajor, columns, gaps };

struct FlashDecodeCase {
  std::string name;
  // The cache: dense of this dtype, or codes where there are codecs, one or two.
  DType cache = DType::f32;
  std::optional<KVCodec> keyCodec = {};
  std::optional<KVCodec> valueCodec = {};
  bool hasKeyMeans = false;
  bool hasValueMeans = false;
  bool hasChannelScales = false;
  bool hasWideScales = false;  // vectors of very different sizes, some of them zero
  uint64_t headDim = 64;
  uint64_t valueHeadDim = 64;
  bool isLatent = false;     // values are the first part of keys, and `headDim` the length of the rest
  bool isOneTensor = false;  // that holds both
  uint64_t kvHeads = 2;
  uint64_t cacheSequences = 0;  // 0: no axis for them
  uint64_t capacity = 0;        // 0: a few slots more than the longest sequence needs
  KVLayout layout = KVLayout::headMajor;
  KVWrap wrap = KVWrap::linear;
  uint32_t pinned = 0;
  // Queries. Without a rank: 3 for one sequence, 4 for several.
  DType queries = DType::f32;
  uint64_t group = 2;
  uint64_t rows = 1;  // the most, where sequences have numbers of rows
  uint32_t rank = 0;
  QueryPlaces queryPlaces = QueryPlaces::tokenMajor;
  uint64_t queryGap = 4;  // elements between vectors that have gaps, and of columns beside them
  std::vector<AttendedSequence> sequences = {{0, 17}};
  float size = 1;                 // queries are uniform up to it; keys and values up to 1
  std::vector<float> sizes = {};  // of one query after the other, instead; all elements are what is not finite
  // Results.
  DType into = DType::f32;
  uint32_t resultRank = 0;  // of `into`; 0: that of token-major queries
  bool givesPartials = false;
  bool givesLogSumExp = false;
  // Options; what the case does not set of these is as the op has it.
  AttentionOptions options = {.kernel = AttentionOptions::Kernel::vector};
  std::optional<MaskCase> mask = {};
  bool hasSlopes = false;
  bool hasSinks = false;
  float sinkSize = 10;  // sinks are uniform up to it
  // Bytes past an aligned address.
  uint64_t cacheShift = 0;
  uint64_t queryShift = 0;
  uint64_t intoShift = 0;
  bool hasScratch = false;  // and a number of splits
  std::vector<SpecialElement> specials = {};

  uint64_t heads() const { return kvHeads * group; }
  uint64_t queryDim() const { return isLatent ? valueHeadDim + headDim : headDim; }
  uint64_t longest() const;
  uint64_t slots() const;
  // Of a sequence, and of all before it, which share a list if they have numbers of rows.
  bool isRagged() const { return !sequences.empty() && sequences[0].rows != 0; }
  uint64_t rowsOf(uint64_t sequence) const { return isRagged() ? sequences[sequence].rows : rows; }
  uint64_t rowsBefore(uint64_t sequence) const;
  uint64_t querySequences() const { return isRagged() ? 1 : sequences.size(); }
  uint64_t queryRows() const { return isRagged() ? rowsBefore(sequences.size()) : rows; }
  uint64_t scratchBytes(uint64_t splits) const;
  bool isQuantized() const { return keyCodec || valueCodec; }
  bool isMixed() const { return keyCodec.has_value() != valueCodec.has_value(); }
  // Whether the matrix kernel is there and takes the case.
  bool fitsMatrices() const;
  // Whether devices may attend with the prefill kernel.
  bool mayBePrefilled() const;
};

// An option that is not a tensor. Rules, bindings and random cases take such options from one list.
struct NumberOption {
  const char* name;  // of the property in Objective-C
  bool isFloat;      // and can be combined with every other option
  double (*get)(const AttentionOptions&);
  void (*set)(AttentionOptions&, double number);
  std::vector<double> valid, invalid;  // the first valid one is usual
};
std::span<const NumberOption> numberOptions();
// Sets floats that are not set to usual numbers, or at random some of them to any valid ones.
void setFloats(AttentionOptions& options, Seeded* random = nullptr);

// What a case attends to, and with how many rows.
enum class AttentionKind { dense, quantized, latent, prompt };
inline constexpr AttentionKind kEveryKind[] = {AttentionKind::dense, AttentionKind::quantized, AttentionKind::latent,
                                               AttentionKind::prompt};
struct HeadDims {
  uint64_t keys = 0;
  uint64_t values = 0;
};
std::span<const HeadDims> denseHeadDims();
const std::vector<DrawnCoding>& attendedCodings();  // every codec at every head dim that attention has kernels for

// A valid case. Consecutive numbers go through all head dims, dtypes and codecs.
FlashDecodeCase drawnAttention(AttentionKind kind, uint64_t number, Seeded& random);
std::vector<FlashDecodeCase> drawnAttentions(AttentionKind kind, uint64_t rounds = 1);
std::vector<FlashDecodeCase> rareAttentions();  // what a draw would rarely hit
std::vector<FlashDecodeCase> allAttentions();

// The op of a case on tensors of the caller's making, those that the case has: the names of OperandBytes, "into",
// "sums", "stats", "log sum exp", "scratch".
FlashDecode makeOp(const FlashDecodeCase& attend, const MakeNamedTensor& makeTensor);

// What the op reads. Vectors that no row sees are NaN or infinite, and so are values that have no weight in any row.
OperandBytes inputsOf(const FlashDecodeCase& attend, Seeded& random);
// The same for an op that breaks no rule, with the contents of a case; special elements aside. Unless unseen vectors
// are hidden, they are like all others.
OperandBytes inputsOf(const FlashDecode& op, const FlashDecodeCase& contents, Seeded& random, bool hidesUnseen = true);
// The tensors that an op reads, by the names of OperandBytes.
std::map<std::string, Tensor> inputTensors(const FlashDecode& op);

}  // namespace mnk::test
