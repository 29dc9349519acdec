// The texts of Shaders/ as this program carries them. `make embed` writes them again.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mnk::metal {

// A file of kernels, with what it includes.
struct EmbeddedFile {
  std::string_view path;
  std::span<const unsigned char> needs;  // numbers of texts, itself last
  std::string_view functions;            // with spaces between; as of Metal 3.2

  std::vector<std::string> functionNames() const;
  bool has(std::string_view function) const;
  // Complete in itself.
  std::string text() const;
};

// Our words in their Metal form, for kernels of the caller's own.
std::string embeddedWords();
// All kernels that this package ships.
std::span<const EmbeddedFile> embeddedFiles();
// The name of an empty kernel that a library made from the same texts exports.
std::string_view shaderStamp();
// How the names of all stamps start.
inline constexpr std::string_view kStampPrefix = "mnkStamp_";
// An empty kernel of libraries whose kernels can order memory between threadgroups, for which they need Metal 3.2.
inline constexpr std::string_view kFencesFunction = "ordersThreadgroups";

}  // namespace mnk::metal
