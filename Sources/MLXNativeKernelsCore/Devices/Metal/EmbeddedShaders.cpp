#include "Devices/Metal/EmbeddedShaders.hpp"

#include <algorithm>

#include "Runtime/Stamp.h"

namespace mnk::metal {

namespace {

#include "EmbeddedShaders.inc"

}  // namespace

std::vector<std::string> EmbeddedFile::functionNames() const {
  std::vector<std::string> names(1);
  for (const char c : functions) {
    if (c == ' ') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

bool EmbeddedFile::has(std::string_view function) const {
  const auto names = functionNames();
  return std::find(names.begin(), names.end(), function) != names.end();
}

std::string EmbeddedFile::text() const {
  std::string whole;
  for (const unsigned char number : needs) whole += kTexts[number];
  return whole;
}

std::string embeddedWords() {
  return kWords;
}
std::span<const EmbeddedFile> embeddedFiles() {
  return kKernelFiles;
}
std::string_view shaderStamp() {
  return MNK_SHADER_STAMP;
}

}  // namespace mnk::metal
