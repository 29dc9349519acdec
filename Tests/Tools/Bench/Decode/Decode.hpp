// FlashDecode on the devices here, against the devices' ceilings and plain C++.
#pragma once
#include "DecodeOptions.hpp"

namespace mnk::bench {

// Prints the measurements; false if something is wrong.
bool measureDecode(const DecodeOptions& options);

}  // namespace mnk::bench
