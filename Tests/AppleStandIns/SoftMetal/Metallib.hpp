// Files that replace metallibs: a first line that identifies them, lines of names, then optional kernel source.
#pragma once
#include <optional>
#include <string>

#include "SoftMetal.hpp"

namespace softmetal {

struct MetallibFile {
  bool isThere = false;
  std::optional<Metallib> contents;  // empty if the file is not a metallib
};
MetallibFile readMetallib(const std::string& path);

}  // namespace softmetal
