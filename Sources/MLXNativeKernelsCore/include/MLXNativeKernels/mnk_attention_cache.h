// The C API to AttentionCache: keys and values of past tokens in its own memory, with the position of each
// sequence. AttentionCache.hpp defines it.
#ifndef MNK_ATTENTION_CACHE_H
#define MNK_ATTENTION_CACHE_H

#include "MLXNativeKernels/Generated/mnk_attention_options.h"
#include "MLXNativeKernels/Generated/mnk_cache_storage.h"
#include "MLXNativeKernels/Generated/mnk_multi_rope.h"
#include "MLXNativeKernels/mnk_core.h"
#include "MLXNativeKernels/mnk_kv_cache.h"
#include "MLXNativeKernels/mnk_kv_codec.h"

MNK_HEADER_BEGIN

mnk_cache* MNK_NULLABLE mnk_cache_make(mnk_device* device, const mnk_attention_cache_descriptor* descriptor,
                                       mnk_error_out error);
void mnk_cache_release(mnk_cache* MNK_NULLABLE cache);

// The descriptor, with all defaults resolved. Its pointers belong to the cache.
mnk_attention_cache_descriptor mnk_cache_get_descriptor(const mnk_cache* cache);
uint64_t mnk_cache_byte_count(const mnk_cache* cache);       // of keys and values, with their scales
uint64_t mnk_cache_bytes_per_token(const mnk_cache* cache);  // of one position of one sequence
int64_t mnk_cache_bytes_saved(const mnk_cache* cache);       // how much more keys and values would take as f16

// One line, such as "8 heads of 128 as f16, 1 sequence at position 13, 4096 slots that fail when full, 16.8 MB". The
// caller releases it with mnk_text_release.
char* MNK_NULLABLE mnk_cache_copy_text(const mnk_cache* cache);

// Tensors over the cache's memory, head-major: [sequences, kvHeads, capacity, headDim], or u8 with the bytes of codes
// instead of headDim. Memory of a new cache is not cleared, so bytes of slots that hold no position are undefined.
mnk_tensor* MNK_NULLABLE mnk_cache_make_keys(const mnk_cache* cache, mnk_error_out error);
mnk_tensor* MNK_NULLABLE mnk_cache_make_values(const mnk_cache* cache, mnk_error_out error);
// Of quantized planes: [sequences, kvHeads, capacity], with a last axis if a vector has several.
mnk_tensor* MNK_NULLABLE mnk_cache_make_key_scales(const mnk_cache* cache, mnk_error_out error);
mnk_tensor* MNK_NULLABLE mnk_cache_make_value_scales(const mnk_cache* cache, mnk_error_out error);

typedef struct mnk_sequence_state {
  uint64_t next_position;  // of the next token that is appended
  uint64_t count;          // positions that can be attended to
  bool is_suspect;         // work that appended to it has failed since its last truncate or reset
} mnk_sequence_state;

// State of committed work: an encoder that has appended changes it when it is committed.
bool mnk_cache_get_sequence(const mnk_cache* cache, uint32_t sequence, mnk_sequence_state* state, mnk_error_out error);
bool mnk_cache_is_suspect(const mnk_cache* cache);  // any sequence
uint64_t mnk_cache_slot(const mnk_cache* cache, uint64_t position);

// A sequence of a cache whose tokens come before those of other sequences, such as a prompt that several conversations
// continue. Both caches must have the same sliding window, or none; otherwise, a call is refused unless its options
// have a window.
typedef struct mnk_cache_prefix {
  const mnk_cache* cache;
  uint32_t sequence;  // or MNK_ONLY_SEQUENCE
} mnk_cache_prefix;

// Tokens of sequences of a cache, to append, to attend, or both. A view without a tensor is left out. A call refuses
// parts that it does not use.
typedef struct mnk_cache_step {
  mnk_heads_view queries;  // to attend
  mnk_heads_view keys;     // to append
  mnk_heads_view values;
  const uint32_t* MNK_NULLABLE sequences;   // NULL: the only sequence of the cache
  const uint32_t* MNK_NULLABLE row_counts;  // how many rows each listed sequence has; NULL: the same number for each
  size_t sequence_count;
  mnk_attention_results results;  // to attend
  mnk_attention_options options;  // to attend; zeros are the defaults
  bool has_rotary;
  mnk_rotary_step rotary;  // only for mnk_encoder_append_and_attend
  // To attend: sequences whose tokens come before those of every listed sequence, the oldest first; up to 1,023.
  // Causality, windows, slopes and, without positions, rotations are those of one sequence with all tokens. No mask.
  const mnk_cache_prefix* MNK_NULLABLE prefixes;  // NULL: none
  size_t prefix_count;
} mnk_cache_step;

// Appends keys and values: [tokens, kvHeads, headDim], [kvHeads, headDim] for one token, or a view of another layout.
// A sequence that is listed again continues.
bool mnk_encoder_append(mnk_encoder* encoder, mnk_cache* cache, const mnk_cache_step* step, mnk_error_out error);
// Attends queries, the newest tokens of their sequences, to all that the cache holds of them, with what this encoder
// has appended.
bool mnk_encoder_attend(mnk_encoder* encoder, const mnk_cache* cache, const mnk_cache_step* step, mnk_error_out error);
// Appends any number of tokens and attends with their queries, in chunks that a ring can serve. Gives the same results
// as appending and attending one token at a time. Tokens that take several chunks need causal attention, without a
// mask. With `rotary`, keys and queries are rotated in the dispatch that stores the keys; those of the step do not
// change.
bool mnk_encoder_append_and_attend(mnk_encoder* encoder, mnk_cache* cache, const mnk_cache_step* step,
                                   mnk_error_out error);
// Replaces `target` with a copy of `source`.
bool mnk_encoder_copy_sequence(mnk_encoder* encoder, mnk_cache* cache, uint32_t source, uint32_t target,
                               mnk_error_out error);
// Replaces `target` of a cache with the same heads, head dims, storage, means and channel scales. Its capacity may
// differ, as long as it holds every position that `cache` holds of the source: a sequence that a ring has overwritten
// in part fits only a ring with the same number of pinned positions.
bool mnk_encoder_copy_sequence_to_cache(mnk_encoder* encoder, const mnk_cache* cache, uint32_t source, mnk_cache* into,
                                        uint32_t target, mnk_error_out error);
// A new cache of a larger capacity with the contents of this one: the same sequences at the same positions. Only the
// encoder can use it until it is committed: to others, its sequences are suspect. A recording cannot grow a cache. This
// one stays as it is. Positions that a ring has overwritten stay lost.
mnk_cache* MNK_NULLABLE mnk_encoder_make_grown_cache(mnk_encoder* encoder, const mnk_cache* cache, uint32_t capacity,
                                                     mnk_error_out error);
// A new, quantized cache with the contents of a dense one: the same sequences, positions and slots. Only the encoder
// can use it until it is committed. Sequences of the same length are quantized in one dispatch, keys and values
// together; with means or channel scales there is one for each sequence.
mnk_cache* MNK_NULLABLE mnk_encoder_make_quantized_cache(mnk_encoder* encoder, const mnk_cache* cache,
                                                         const mnk_kv_quantized_storage* storage, mnk_error_out error);
// Dequantizes positions of a quantized cache; the tensors say how many: [tokens, kvHeads, headDim], or without
// tokens for one. At least one of keys and values.
bool mnk_encoder_dequantize(mnk_encoder* encoder, const mnk_cache* cache, const mnk_tensor* MNK_NULLABLE keys,
                            const mnk_tensor* MNK_NULLABLE values, uint64_t position, uint32_t sequence,
                            mnk_kv_domain domain, mnk_error_out error);
// Removes the tokens at `position` and after it. A sliding-window cache refuses a position at which the next row would
// not see its whole window.
bool mnk_cache_truncate(mnk_cache* cache, uint64_t position, uint32_t sequence, mnk_error_out error);
bool mnk_cache_reset_sequence(mnk_cache* cache, uint32_t sequence, mnk_error_out error);
void mnk_cache_reset(mnk_cache* cache);

// Writes the cache to a file, after waiting for submitted work that writes it. Only its owner can read a new file. An
// existing file is replaced once everything is written, keeps its permissions, and is left unchanged if the call fails.
// Symbolic links are followed, except links of other users that do not own the link's folder.
bool mnk_cache_save(const mnk_cache* cache, const char* path, mnk_error_out error);
// The cache of a file, which need not be trusted: it is checked, and the call fails if keys and values would take more
// than max_bytes. Its capacity can be another one that holds every position that the file holds; 0: as saved.
mnk_cache* MNK_NULLABLE mnk_cache_make_from_path(mnk_device* device, const char* path, uint64_t max_bytes,
                                                 uint32_t capacity, mnk_error_out error);

MNK_HEADER_END

#endif
