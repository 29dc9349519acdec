// A FlashDecode in numbers, made by the generator and checked by the contract beside it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "KVCacheQuantize/KVCacheQuantizeCall.hpp"
#include "MLXNativeKernels/FlashDecode.hpp"
#include "MultiRoPE/MultiRoPECall.hpp"
#include "OpCase.hpp"

namespace mnk::fuzz {

struct FlashDecodeSpec {
  bool isNull = false;
  size_t size = sizeof(mnk_flash_decode);
  uint8_t tail = 0;  // what follows the op's struct
  std::optional<TensorSpec> queries;
  std::optional<mnk_heads_view> queriesView;  // everything but the tensor, which is that of the queries
  // Which views are passed. Both have the tensors of `cache.write`; the dense one has its numbers alone.
  bool hasDense = true;
  bool hasQuantized = false;
  KVCacheQuantizeSpec cache;
  bool hasSequences = true;
  std::vector<mnk_attended_sequence> sequences;
  std::optional<uint64_t> sequenceCount = {};  // in place of the list's own
  bool hasResults = true;
  size_t resultsSize = sizeof(mnk_attention_results);
  std::optional<TensorSpec> into, sums, stats, logSumExp;
  bool hasOptions = true;
  mnk_attention_options options{};  // everything but the tensors
  std::optional<TensorSpec> mask, slopes, sinks, scratch;

  const mnk_kv_cache_view& view() const { return cache.write.numbers.into; }
  mnk_kv_cache_view& view() { return cache.write.numbers.into; }
  // What the call means by its options.
  mnk_attention_options usedOptions() const;
  const std::optional<TensorSpec>& used(const std::optional<TensorSpec>& tensorOfOptions) const;
  std::string text() const;
};

// Operands of the second call of a case. The first has three: what it reads must stay as the second found it.
struct FlashDecodeRegion {
  enum : uint32_t {
    kQueries,
    kKeys,
    kValues,
    kKeyScales,
    kValueScales,
    kKeyMeans,
    kValueMeans,
    kChannelScales,
    kMask,
    kSlopes,
    kSinks,
    kInto,
    kSums,
    kStats,
    kLogSumExp,
    kScratch,
    kFirstQueries,
    kFirstCache,
    kFirstInto,
  };
};

// All tensors, those of the cache included.
std::vector<std::optional<TensorSpec>*> tensorsOf(FlashDecodeSpec& spec);

// Where queries lie, with strides whatever they are passed as. Nothing where their tensor has another rank.
std::optional<mnk_heads_view> queryPlaces(const FlashDecodeSpec& spec);
// Queries as [sequences, rows, heads, headDim]; zeros where they have no places.
struct QueryDims {
  uint64_t sequences = 0, rows = 0, heads = 0, headDim = 0;
  uint64_t vectors() const;  // the largest number where there are more
};
QueryDims queryDims(const FlashDecodeSpec& spec);
// The longest list of sequences that the C API reads, of queries that have places or not.
uint64_t mostSequences(const std::optional<mnk_heads_view>& places);
// Elements of a key and of a value, of a spec whose cache has a rank.
uint64_t keyDimOf(const FlashDecodeSpec& spec);
uint64_t valueDimOf(const FlashDecodeSpec& spec);

FlashDecodeSpec validDecode(Seeded& random, Bank bank);
// After one to three mutations; some leave it valid.
FlashDecodeSpec mutated(FlashDecodeSpec spec, Seeded& random);
// The contract of FlashDecode.hpp and mnk_flash_decode.h restated over plain numbers: what the error must say, or
// nothing.
std::string refusalOf(const FlashDecodeSpec& spec);

// The largest length that a sequence has had.
uint64_t writtenOf(const mnk_attended_sequence& attended);
// The rows of a sequence.
uint64_t rowsOf(const FlashDecodeSpec& spec, const mnk_attended_sequence& attended);
// The keys of the sequence that has most of them, of a spec whose sequences fit in its cache.
uint64_t mostHeld(const FlashDecodeSpec& spec);
// A valid spec for the reference, on tensors without memory.
FlashDecode referenceOp(const FlashDecodeSpec& spec);
// What a valid call makes of the arena's images.
void applyDecode(const FlashDecodeSpec& spec, Arena& arena);

Target flashDecodeTarget();

}  // namespace mnk::fuzz
