// The program's arguments.
#pragma once
#include <string>
#include <vector>

#include "DecodeCase.hpp"
#include "MLXNativeKernels/FlashDecode.hpp"

namespace mnk::bench::decode {

struct Arguments {
  std::string device;    // its kind; empty: all
  std::string jsonFile;  // empty: none
  std::string shaders = "Shaders";
  std::vector<DecodeCase> cases;
  AttentionOptions options = {};
  bool isCold = false;
  bool isTuning = false;
  bool wantsHelp = false;

  static Result<Arguments> parse(int argc, char* const* argv);
  static const char* help();
};

}  // namespace mnk::bench::decode
