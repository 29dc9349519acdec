// The files that stand for metallibs: a first line that says so, lines of names, then perhaps kernel text.
#pragma once
#include <optional>
#include <string>

#include "SoftMetal.hpp"

namespace softmetal {

struct MetallibFile {
  bool isThere = false;
  std::optional<Metallib> contents;  // nothing where the file is not a metallib
};
MetallibFile readMetallib(const std::string& path);

}  // namespace softmetal
