// Views of heads, as descriptors of ops hold them.
#pragma once
#include <optional>

#include "CAPI/Handles.hpp"

namespace mnk::c {

// The view, or nothing where it has no tensor. Inside another struct a longer one would have moved all that follows it.
Result<std::optional<HeadsView>> viewFrom(const mnk_heads_view& given);

}  // namespace mnk::c
