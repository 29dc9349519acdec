// A FlashDecode in numbers, made by the generator and judged by the contract beside it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "KVCacheQuantizeCall.hpp"
#include "MultiRoPECall.hpp"
#include "OpCase.hpp"

namespace mnk::fuzz {

struct FlashDecodeWords {
  bool isNull = false;
  size_t size = sizeof(mnk_flash_decode);
  uint8_t tail = 0;  // what follows the op's struct
  std::optional<TensorWords> queries;
  std::optional<mnk_heads_view> queriesView;  // everything but the tensor, which is that of the queries
  // Which views are passed. Both have the tensors of `cache.write`; the dense one has its numbers alone.
  bool hasDense = true;
  bool hasQuantized = false;
  KVCacheQuantizeWords cache;
  bool hasSequences = true;
  std::vector<mnk_attended_sequence> sequences;
  std::optional<uint64_t> sequenceCount = {};  // in place of the list's own
  bool hasResults = true;
  size_t resultsSize = sizeof(mnk_attention_results);
  std::optional<TensorWords> into, sums, stats, logSumExp;
  bool hasOptions = true;
  mnk_attention_options options{};  // everything but the tensors
  std::optional<TensorWords> mask, slopes, sinks, scratch;

  const mnk_kv_cache_view& view() const { return cache.write.numbers.into; }
  mnk_kv_cache_view& view() { return cache.write.numbers.into; }
  // What the call means by its options.
  mnk_attention_options usedOptions() const;
  const std::optional<TensorWords>& used(const std::optional<TensorWords>& tensorOfOptions) const;
  std::string text() const;
};

// Operands of the second call of a case. The first has three: what it reads must stay as the second found it.
struct FlashDecodeArena {
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
std::vector<std::optional<TensorWords>*> tensorsOf(FlashDecodeWords& words);

// Where queries lie, with strides whatever they are passed as. Nothing where their tensor has another rank.
std::optional<mnk_heads_view> queryPlaces(const FlashDecodeWords& words);
// Queries as [sequences, rows, heads, headDim]; zeros where they have no places.
struct QueryDims {
  uint64_t sequences = 0, rows = 0, heads = 0, headDim = 0;
  uint64_t vectors() const;  // the largest number where there are more
};
QueryDims queryDims(const FlashDecodeWords& words);
// Elements of a key and of a value, of words whose cache has a rank.
uint64_t keyDimOf(const FlashDecodeWords& words);
uint64_t valueDimOf(const FlashDecodeWords& words);

FlashDecodeWords validDecode(Seeded& random, Bank bank);
// After one to three attacks; some leave it valid.
FlashDecodeWords attacked(FlashDecodeWords words, Seeded& random);
// The contract of FlashDecode.hpp and mnk_flash_decode.h restated over plain numbers: what the error must say, or
// nothing.
std::string refusalOf(const FlashDecodeWords& words);

// A key that a cache holds, and where.
struct HeldSlot {
  uint64_t position, slot;
};
// The largest length that a sequence has had.
uint64_t writtenOf(const mnk_attended_sequence& attended);
// The oldest first, of words whose sequences fit in their cache.
std::vector<HeldSlot> heldSlots(const FlashDecodeWords& words, const mnk_attended_sequence& attended);
// The keys of the sequence that has most of them.
uint64_t mostHeld(const FlashDecodeWords& words);
// Whether row `row` of a sequence with so many positions sees a position.
bool sees(const FlashDecodeWords& words, uint64_t length, uint64_t row, uint64_t position);
// What a valid call makes of the world's images.
void applyDecode(const FlashDecodeWords& words, World& world);

Target flashDecodeTarget();

}  // namespace mnk::fuzz
