// The options of `bench decode`.
#pragma once
#include "DecodeCase.hpp"
#include "Harness/Arguments.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"

namespace mnk::bench {

struct DecodeOptions {
  std::string device;    // its kind; empty: all
  std::string jsonFile;  // empty: none
  std::string shaders = "Shaders";
  Axes axes;  // empty lists have defaults
  AttentionOptions attention = {};
  uint32_t workers = 0;  // of the Host device; 0: one per core
  bool isFull = false;
  bool isCold = false;
  bool isTuning = false;

  std::vector<arguments::Option> table();
  std::vector<DecodeCase> cases() const;
};

}  // namespace mnk::bench
