// A KVCacheWrite in numbers, made by the generator and judged by the contract beside it.
#pragma once
#include <optional>
#include <vector>

#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "OpCase.hpp"

namespace mnk::fuzz {

// Row indices as they are passed: a list, a tensor with these contents, or both, of which the tensor counts.
struct RowWords {
  std::vector<uint32_t> list;
  bool hasList = true;
  std::optional<uint64_t> listCount = {};  // in place of the list's own
  std::optional<TensorWords> tensor = {};
};

struct KVCacheWriteWords {
  bool isNull = false;
  std::optional<TensorWords> keys, values, keyCache, valueCache;
  // Everything but the tensors, which are then those above.
  std::optional<mnk_heads_view> keysView, valuesView;
  RowWords sequences, positions;
  // Everything but handles and pointers, which are filled in when the call is made.
  mnk_kv_cache_write numbers{};
  // What follows the struct, for callers who claim that theirs is longer.
  uint8_t tail = 0;

  std::string text() const;
};

// Valid numbers, with arenas for every operand; sources by their shapes alone if they are still to change.
KVCacheWriteWords validWrite(Seeded& random, Bank bank, bool mayHaveViews = true);
// Passes some sources as views of the same vectors elsewhere. False where an arena has no room for them.
bool viewSources(KVCacheWriteWords& words, Seeded& random);
// The same after one to three attacks; some leave it valid.
KVCacheWriteWords attackedWrite(Seeded& random, Bank bank);
// One attack on words that have any tensor.
void attackOnce(KVCacheWriteWords& words, Seeded& random);
// The contract of KVCacheWrite.hpp and mnk.h restated over plain numbers: what the error must say, or nothing.
std::string refusalOf(const KVCacheWriteWords& words);
// The parts of it that all ops share which store tokens: lists that the C API refuses, handles, layouts and ranks of
// sources, which tokens go where. The last needs operands that are valid.
std::string refusalOfLists(const KVCacheWriteWords& words);
std::string refusalOfSources(const KVCacheWriteWords& words);
std::string refusalOfSourceHandles(const KVCacheWriteWords& words);
std::string refusalOfLayouts(const KVCacheWriteWords& words);
std::string refusalOfPlaces(const KVCacheWriteWords& words);
// Source tokens that a call with valid operands stores.
uint64_t tokensOf(const KVCacheWriteWords& words);
// A source as [heads, tokens of all sequences, headDim], a cache as [sequences, heads, capacity, headDim].
struct SourceDims {
  uint64_t sequences = 0, heads = 0, tokens = 0, headDim = 0;
  uint64_t tokensOfEach = 0;  // sequence
};
struct CacheDims {
  uint64_t sequences, heads, capacity, headDim;
};
// Where vectors lie; nothing where the tensor has another rank.
std::optional<mnk_heads_view> placesOfSource(const TensorWords& tensor, const std::optional<mnk_heads_view>& view,
                                             mnk_kv_layout layout);
// The first element of a vector.
uint64_t elementAt(const mnk_heads_view& places, uint64_t token, uint64_t head);
// The bytes from the first vector to the last.
TensorWords rangeOfSource(const TensorWords& tensor, const mnk_heads_view& places);
// By its shape, with zeros for another rank.
SourceDims sourceDims(const TensorWords& tensor, mnk_kv_layout layout);
// Whether two sources agree on their tokens, and whether these are too many for the kernel. Sources must have a rank.
bool isOfSameTokens(const SourceDims& a, const SourceDims& b);
bool hasTooManyTokens(const KVCacheWriteWords& words);
SourceDims dimsOfKeys(const KVCacheWriteWords& words);
SourceDims dimsOfValues(const KVCacheWriteWords& words);
CacheDims cacheDims(const TensorWords& tensor, mnk_kv_layout layout);

// A source of valid words for the reference.
HeadsView referenceSource(const TensorWords& tensor, const std::optional<mnk_heads_view>& view, mnk_kv_layout layout);

std::unique_ptr<OpCall> makeKVCacheWriteCall(World& world, Seeded& random, Wish wish, Bank bank);
Target kvCacheWriteTarget();

}  // namespace mnk::fuzz
