// What the descriptors of all attention calls share, read in place because it is large.
#pragma once
#include "CAPI/Handles.hpp"

namespace mnk::c {

// Null options are the defaults.
Result<void> readOptions(AttentionOptions& into, const mnk_attention_options* options);
Result<void> readResults(AttentionResults& into, const mnk_attention_results* results);

}  // namespace mnk::c
