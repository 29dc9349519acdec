// What the descriptors of all calls that attend have in common.
#pragma once
#include "CAPI/Handles.hpp"

namespace mnk::c {

// Without options: the defaults.
Result<AttentionOptions> attentionOptions(const mnk_attention_options* options);
Result<AttentionResults> attentionResults(const mnk_attention_results* results);

}  // namespace mnk::c
