// The texts of Shaders/ as this program carries them, each complete in itself. `make embed` writes them anew.
#pragma once
#include <string>
#include <string_view>

namespace mnk::metal {

// Our words in their Metal form, for kernels of the caller's own.
std::string embeddedWords();
// All kernels that this package ships.
std::string embeddedKernels();
// The name of an empty kernel that a library made from the same texts exports.
std::string_view shaderStamp();
// How the names of all stamps start.
inline constexpr std::string_view kStampPrefix = "mnkStamp_";

}  // namespace mnk::metal
