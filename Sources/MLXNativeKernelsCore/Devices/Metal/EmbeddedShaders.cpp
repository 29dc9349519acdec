#include "EmbeddedShaders.hpp"

#include "Runtime/Stamp.h"

namespace mnk::metal {

namespace {

#include "EmbeddedShaders.inc"

}  // namespace

std::string embeddedWords() {
  return kWordsText;
}
std::string embeddedKernels() {
  return kShippedText;
}
std::string_view shaderStamp() {
  return MNK_SHADER_STAMP;
}

}  // namespace mnk::metal
