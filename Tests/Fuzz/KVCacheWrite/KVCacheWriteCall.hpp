// A KVCacheWrite in numbers, made by the generator and checked by the contract beside it.
#pragma once
#include <optional>
#include <vector>

#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "OpCase.hpp"

namespace mnk::fuzz {

// Row indices as they are passed: a list, a tensor with these contents, or both, of which the tensor counts.
struct RowSpec {
  std::vector<uint32_t> list;
  bool hasList = true;
  std::optional<uint64_t> listCount = {};  // in place of the list's own
  std::optional<TensorSpec> tensor = {};
};

struct KVCacheWriteSpec {
  bool isNull = false;
  std::optional<TensorSpec> keys, values, keyCache, valueCache;
  // Everything but the tensors, which are then those above.
  std::optional<mnk_heads_view> keysView, valuesView;
  RowSpec sequences, positions;
  // Everything but handles and pointers, which are filled in when the call is made.
  mnk_kv_cache_write numbers{};
  // What follows the struct, for callers who claim that theirs is longer.
  uint8_t tail = 0;

  std::string text() const;
};

// Valid numbers, with regions for every operand; sources by their shapes alone if they are still to change.
KVCacheWriteSpec validWrite(Seeded& random, Bank bank, bool mayHaveViews = true);
// Passes some sources as views of the same vectors elsewhere. False where a region has no room for them.
bool viewSources(KVCacheWriteSpec& spec, Seeded& random);
// The same after one to three mutations; some leave it valid.
KVCacheWriteSpec mutatedWrite(Seeded& random, Bank bank);
// One mutation of a spec that has any tensor.
void mutateOnce(KVCacheWriteSpec& spec, Seeded& random);
// The contract of KVCacheWrite.hpp and mnk.h restated over plain numbers: what the error must say, or nothing.
std::string refusalOf(const KVCacheWriteSpec& spec);
// The parts of it that all ops share which store tokens: lists that the C API refuses, handles, layouts and ranks of
// sources, which tokens go where. The last needs operands that are valid.
std::string refusalOfLists(const KVCacheWriteSpec& spec);
std::string refusalOfSources(const KVCacheWriteSpec& spec);
std::string refusalOfSourceHandles(const KVCacheWriteSpec& spec);
std::string refusalOfLayouts(const KVCacheWriteSpec& spec);
std::string refusalOfPlaces(const KVCacheWriteSpec& spec);
// Source tokens that a call with valid operands stores.
uint64_t tokensOf(const KVCacheWriteSpec& spec);
// A source as [heads, tokens of all sequences, headDim], a cache as [sequences, heads, capacity, headDim].
struct SourceDims {
  uint64_t sequences = 0, heads = 0, tokens = 0, headDim = 0;
  uint64_t tokensOfEach = 0;  // sequence
};
struct CacheDims {
  uint64_t sequences, heads, capacity, headDim;
};
// Where vectors lie; nothing where the tensor has another rank.
std::optional<mnk_heads_view> placesOfSource(const TensorSpec& tensor, const std::optional<mnk_heads_view>& view,
                                             mnk_kv_layout layout);
// The first element of a vector.
uint64_t elementAt(const mnk_heads_view& places, uint64_t token, uint64_t head);
// The bytes from the first vector to the last.
TensorSpec rangeOfSource(const TensorSpec& tensor, const mnk_heads_view& places);
// By its shape, with zeros for another rank.
SourceDims sourceDims(const TensorSpec& tensor, mnk_kv_layout layout);
// Whether two sources agree on their tokens, and whether these are too many for the kernel. Sources must have a rank.
bool isOfSameTokens(const SourceDims& a, const SourceDims& b);
bool hasTooManyTokens(const KVCacheWriteSpec& spec);
SourceDims dimsOfKeys(const KVCacheWriteSpec& spec);
SourceDims dimsOfValues(const KVCacheWriteSpec& spec);
CacheDims cacheDims(const TensorSpec& tensor, mnk_kv_layout layout);

// A source of a valid spec for the reference.
HeadsView referenceSource(const TensorSpec& tensor, const std::optional<mnk_heads_view>& view, mnk_kv_layout layout);

std::unique_ptr<OpCall> makeKVCacheWriteCall(Arena& arena, Seeded& random, Wish wish, Bank bank);
Target kvCacheWriteTarget();

}  // namespace mnk::fuzz
