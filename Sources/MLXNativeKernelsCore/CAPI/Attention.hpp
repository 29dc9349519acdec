// What the descriptors of all attention calls share.
#pragma once
#include "CAPI/Generated/Read.hpp"

namespace mnk::c {

Result<void> readResults(AttentionResults& into, const mnk_attention_results* results);

}  // namespace mnk::c
