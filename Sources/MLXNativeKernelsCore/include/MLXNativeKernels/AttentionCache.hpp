// Keys and values of past tokens, with the position of each sequence. `append` writes at the next position and advances
// it when the encoder is committed; an encoder that is dropped or refused advances nothing. When committed work fails
// on the device, the sequences it appended to are suspect until they are truncated to where that work began, or reset.
// Keys and values are stored as elements or quantized by a KVCodec, each independently. A cache can be saved to a file,
// and a loaded cache continues where the saved one was. Several threads may use a cache, each with its own encoders. A
// commit is refused, with a retryable error, if another thread has since changed tokens that it reads or the position
// at which it appends.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/CacheStorage.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"

namespace mnk {

struct CacheStep;

class AttentionCache {
 public:
  static Result<AttentionCache> make(const std::shared_ptr<Device>& device, const AttentionCacheDescriptor& descriptor);

  // Copies share the cache. Moves copy too, so that no cache is ever without memory.
  AttentionCache(const AttentionCache&);
  AttentionCache& operator=(const AttentionCache&) = default;

  const AttentionCacheDescriptor& descriptor() const;
  // A view of the stored keys and values. For a quantized cache, its elements are code bytes. Memory of a new cache is
  // not cleared: slots that hold no position are undefined.
  KVCacheView view() const;
  std::optional<QuantizedKVCacheView> quantizedView() const;  // empty for a dense cache

  uint64_t byteCount() const;      // of keys and values together, with their scales
  uint64_t bytesPerToken() const;  // of one position of one sequence: keys and values of all heads
  int64_t bytesSaved() const;      // how much more keys and values would take as f16

  // State of committed work: an encoder that has appended changes it when it is committed.
  Result<uint64_t> nextPosition(uint32_t sequence = kOnlySequence) const;
  Result<uint64_t> count(uint32_t sequence = kOnlySequence) const;  // positions that can be attended to
  bool isSuspect(uint32_t sequence) const;  // also true of a sequence that the cache does not have
  bool isSuspect() const;                   // any sequence

  // The positions that the next tokens get, after what the encoder that asks has appended, for MultiRoPE. Lists have
  // the meaning that they have in append; without one, the tokens are of the only sequence. An encoder that rotates by
  // them must then append these tokens, or it cannot be committed. It knows tokens by their memory, and refuses to
  // append and attend with rows that were not rotated for these tokens, unless a dispatch of it has written them since.
  RotaryPositions nextPositions(std::vector<uint32_t> sequences = {kOnlySequence},
                                std::optional<std::vector<uint32_t>> rowCounts = {}) const;
  // "8 heads of 128 as f16, 1 sequence at position 13, 4096 slots that fail when full, 16.8 MB"
  std::string text() const;

  // Appends keys and values: [tokens, kvHeads, headDim], [kvHeads, headDim] for one token, or a view of another layout.
  // A tensor is token-major; a HeadsView can have another layout.
  Result<void> append(CommandEncoder& encoder, const CacheStep& step);
  Result<void> append(CommandEncoder& encoder, HeadsView keys, HeadsView values, uint32_t sequence = kOnlySequence);

  // Attends queries, the newest tokens of their sequences, to all that the cache holds of them, as FlashDecode does:
  // [heads, headDim] for one row, [rows, heads, headDim], or a view of another layout. Attention sees tokens appended
  // earlier in the same step, so append the queries' own keys and values first: a sequence without tokens is an error,
  // and so is an append after causal attention over a sequence to which the encoder had not appended; reading it as a
  // prefix does not count. All sequences attend in one FlashDecode, even if row counts differ; a mask needs equal
  // counts. Results may not overlap queries, and cannot be partials: for keys in several caches, pass prefixes. With
  // a window, a row that would see a position that a ring has overwritten is an error. Without one a row sees what the
  // ring holds up to its own position, which it must hold; several rows in one step then see less than the same rows
  // one at a time, because all of their keys are stored before the first attends. Attention that is not causal sees all
  // that the ring still holds, with any number of rows.
  Result<void> attend(CommandEncoder& encoder, const CacheStep& step) const;
  Result<void> attend(CommandEncoder& encoder, HeadsView queries, AttentionResults results,
                      AttentionOptions options = {}, uint32_t sequence = kOnlySequence) const;

  // Appends any number of tokens and attends with their queries, in chunks that the ring can serve. Gives the same
  // results as appending and attending one token at a time. Without a window a full ring takes one token at a time.
  // Tokens that take several chunks need causal attention, without a mask. With `rotary`, a chunk's keys and queries
  // are rotated in the dispatch that stores the keys: it stores the same bytes, and attends as if MultiRoPE had rotated
  // them first.
  Result<void> appendAndAttend(CommandEncoder& encoder, const CacheStep& step);

  // Replaces `target` with a copy of `source`.
  Result<void> copy(CommandEncoder& encoder, uint32_t source, uint32_t target);
  // Replaces `target` of a cache of the same heads, head dims, storage, means and channel scales. Its capacity may
  // differ, as long as it holds every position that this one holds: a sequence that a ring has overwritten in part fits
  // only a ring with the same number of pinned positions.
  Result<void> copy(CommandEncoder& encoder, uint32_t source, AttentionCache& into, uint32_t target) const;

  // A new cache of a larger capacity with the contents of this one: the same sequences at the same positions. Only
  // the encoder can use it until it is committed: to others, its sequences are suspect. A recording cannot grow a
  // cache. This one stays as it is, and so do recorded steps that use it. Positions that a ring has overwritten stay
  // lost. Neighboring sequences that stand at the same position take one dispatch for keys and values, and one for
  // their scales; a ring that has pinned positions and has wrapped takes two of each.
  Result<AttentionCache> grown(CommandEncoder& encoder, uint32_t capacity) const;

  // A new, quantized cache with the contents of this dense one: the same sequences, positions, slots, ring and pinned
  // positions. Only the encoder can use it until it is committed. Sequences of the same length are quantized in one
  // dispatch, keys and values together; with means or channel scales there is one for each sequence. A storage that
  // quantizes only keys or only values keeps the others unchanged.
  Result<AttentionCache> quantized(CommandEncoder& encoder, const KVQuantizedStorage& storage) const;

  // Dequantizes positions of a quantized cache from `position` on, to fill the tensors, which have the shapes of an
  // append; at least one of them. What the same encoder has appended can be read, what it has overwritten cannot.
  Result<void> dequantize(CommandEncoder& encoder, const std::optional<Tensor>& keys,
                          const std::optional<Tensor>& values, uint64_t position, uint32_t sequence = kOnlySequence,
                          KVDomain domain = KVDomain::original) const;

  // Removes the tokens at `position` and after it. Positions that a ring has overwritten cannot be restored. A
  // sliding-window cache refuses a position at which the next row would not see its whole window.
  Result<void> truncate(uint64_t position, uint32_t sequence = kOnlySequence);
  Result<void> reset(uint32_t sequence);
  void reset();

  // Writes the cache to a file. Only its owner can read a new file. An existing file is replaced once everything is
  // written, keeps its permissions, and is left unchanged if the call fails. Follows symbolic links, except links of
  // other users that do not own the link's folder. Waits for submitted work that writes the cache. Fails, with a
  // retryable error, if the cache changes meanwhile.
  Result<void> save(const std::string& path) const;
  // Loads a cache. The file is untrusted; every field is validated. Keys, values and scales may take at most
  // `maxBytes`, and so may what is read besides them (or 1 MiB, if that is more); memory is allocated only if the file
  // has the expected length. The capacity can differ from the saved one if it holds every position of the file; 0: the
  // same.
  static Result<AttentionCache> load(const std::shared_ptr<Device>& device, const std::string& path, uint64_t maxBytes,
                                     uint32_t capacity = 0);

 private:
  AttentionCache() = default;
  Result<void> growFrom(CommandEncoder& encoder, const AttentionCache& source);
  Result<void> quantizeFrom(CommandEncoder& encoder, const AttentionCache& source);

  friend class Preparing;
  struct State;
  std::shared_ptr<State> state_;
};

// A sequence of a cache whose tokens come before those of other sequences, such as a prompt that several conversations
// continue. It is not changed, and it may be in the cache that holds the others. Both caches must have the same sliding
// window, or none; otherwise, a call is refused unless it passes AttentionOptions::window.
struct CachePrefix {
  AttentionCache cache;
  uint32_t sequence = kOnlySequence;
};

// Tokens of sequences of a cache, to append, to attend, or both. Operands do not change.
struct CacheStep {
  HeadsView queries = {};  // of attention
  HeadsView keys = {};     // to append, the tokens of the queries
  HeadsView values = {};
  std::optional<RotaryStep> rotary = {};  // of appendAndAttend; none: queries and keys are rotated already, or never
  AttentionResults results = {};
  AttentionOptions options = {};
  // The sequences that the tokens continue, in their order. A sequence that is listed again continues.
  std::vector<uint32_t> sequences = {kOnlySequence};
  // How many tokens each listed sequence has, 0 to leave it out. Without counts, a single sequence has all tokens, and
  // each of several has one, or the tokens of its sequence in the views.
  std::optional<std::vector<uint32_t>> rowCounts = {};
  // Sequences whose tokens come before those of every listed sequence, the oldest first: position 0 of a listed
  // sequence follows the last position of the last prefix. Causality, windows and slopes are those of one sequence with
  // all tokens; there is no mask. Prefixes may be stored otherwise than the cache. Each is attended to with the rows of
  // all sequences at once, unless a window or slopes tell the sequences apart. Without positions in `rotary`, tokens
  // are rotated by their positions after the prefixes.
  std::vector<CachePrefix> after = {};
};

}  // namespace mnk
