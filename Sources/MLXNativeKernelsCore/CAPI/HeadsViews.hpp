// Reads views of heads in op descriptors.
#pragma once
#include <optional>

#include "CAPI/Handles.hpp"

namespace mnk::c {

// Empty if the view has neither a tensor nor strides. The size must match, because a longer nested struct would move
// the fields after it. `name` is the field, for errors.
Result<std::optional<HeadsView>> viewFrom(const mnk_heads_view& input, std::string_view name);

}  // namespace mnk::c
