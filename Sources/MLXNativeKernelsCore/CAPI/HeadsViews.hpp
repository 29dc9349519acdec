// Reads views of heads in op descriptors.
#pragma once
#include <optional>

#include "CAPI/Handles.hpp"

namespace mnk::c {

// Empty if the view has no tensor. The size must match, because a longer nested struct would move the fields after it.
Result<std::optional<HeadsView>> viewFrom(const mnk_heads_view& input);

}  // namespace mnk::c
