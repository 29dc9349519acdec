// What the descriptors of all attention calls share.
#pragma once
#include "CAPI/Handles.hpp"

namespace mnk::c {

// Null options are the defaults.
Result<AttentionOptions> attentionOptions(const mnk_attention_options* options);
Result<AttentionResults> attentionResults(const mnk_attention_results* results);

}  // namespace mnk::c
