// Positions and offsets, which ops and steps share.
#pragma once
#include "CAPI/Generated/Read.hpp"

namespace mnk::c {

// Empty if there are no positions. With positions, a first position is an error.
Result<std::optional<RotaryPositions>> rotaryPositions(const mnk_rotary_numbers& input, int64_t firstPosition);
Result<std::optional<RotaryPositions>> nextPositions(const mnk_next_positions& input, bool hasOthers);
Result<std::optional<RotaryOffsets>> rotaryOffsets(const mnk_rotary_numbers& input, std::string_view what = "offsets",
                                                   bool hasAxes = false);

}  // namespace mnk::c
