// Reads views of heads in op descriptors. What is large is read in place.
#pragma once
#include <optional>

#include "CAPI/Handles.hpp"

namespace mnk::c {

// False if the view has neither a tensor nor strides. `name` is the field, for errors.
Result<bool> readView(HeadsView& into, const mnk_heads_view& input, std::string_view name);
Result<void> readView(std::optional<HeadsView>& into, const mnk_heads_view& input, std::string_view name);

}  // namespace mnk::c
