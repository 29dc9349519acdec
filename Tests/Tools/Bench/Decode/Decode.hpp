// FlashDecode on the devices here, against the devices' ceilings and plain C++.
#pragma once
#include "DecodeCase.hpp"
#include "Harness/Arguments.hpp"

namespace mnk::bench {

// The options of `bench decode`.
struct DecodeOptions {
  std::string device;    // its kind; empty: all
  std::string jsonFile;  // empty: none
  Axes axes;             // empty lists have defaults
  AttentionOptions attention = {};
  uint32_t workers = 0;  // of the Host device; 0: one per core
  bool isFull = false;
  bool isCold = false;
  bool isTuning = false;

  std::vector<arguments::Option> table();
  std::vector<DecodeCase> cases() const;
};

// Prints the measurements; false if something is wrong.
bool measureDecode(const DecodeOptions& options);

}  // namespace mnk::bench
