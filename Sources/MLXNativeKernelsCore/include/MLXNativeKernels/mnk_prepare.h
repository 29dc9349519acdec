// Does ahead of time what the first steps over caches would do: compiles kernels, finds out what the device can do, and
// optionally measures which kernels are the fastest on it. Prepare.hpp defines it.
#ifndef MNK_PREPARE_H
#define MNK_PREPARE_H

#include "MLXNativeKernels/mnk_attention_cache.h"

MNK_HEADER_BEGIN

typedef struct mnk_preparation {
  const mnk_cache* MNK_NULLABLE const* MNK_NULLABLE caches;  // of the device; such as one for each layer
  size_t cache_count;
  uint32_t query_heads;  // as steps have them; 0: the number of KV heads
  uint32_t rows;         // tokens of a sequence in one step, at most; 0 is 1; steps of one token are always prepared
  mnk_dtype dtype;       // of steps' queries, results, keys and values: f32, f16 or bf16
  mnk_attention_options options;  // that steps attend with; zeros are the defaults
  bool has_rotary;
  mnk_rotary_embedding rotary;  // that steps rotate queries and keys with
  mnk_tuning tuning;
  const char* MNK_NULLABLE tuning_file;  // a tuning file, or none yet; NULL or empty: one in the user's caches
} mnk_preparation;

typedef struct mnk_preparation_summary {
  uint64_t kernels;   // ready to run
  uint64_t measured;  // shapes that this call measured
  uint64_t known;     // shapes that were measured before
  double seconds;
  bool is_kept;  // there are measured choices, and the file holds them
} mnk_preparation_summary;

// Waits for the device; in a handler of finished work that is an error (wouldDeadlock). `summary` may be NULL.
bool mnk_device_prepare(mnk_device* device, const mnk_preparation* preparation,
                        mnk_preparation_summary* MNK_NULLABLE summary, mnk_error_out error);
// "12 kernels, 3 shapes measured, 0 known, 0.4 s". The caller releases it with mnk_text_release.
char* MNK_NULLABLE mnk_preparation_summary_copy_text(const mnk_preparation_summary* summary);

MNK_HEADER_END

#endif
