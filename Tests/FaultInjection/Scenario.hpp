// What a user does, from tensors to a saved cache, with the checks that hold whichever allocation fails: a call
// succeeds, or reports outOfMemory and has changed nothing, and then succeeds when it is made again.
#pragma once
#include <map>
#include <stdexcept>
#include <vector>

#include "Session.hpp"

namespace mnk::inject {

// What a check found.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Tally {
  uint64_t succeeded = 0, failed = 0;
};

// The numbers that a run without failures read, by name.
using Numbers = std::map<std::string, std::vector<float>>;

// Each is its own scenario, so that few steps follow or precede the allocation that fails.
enum class Part : uint8_t { library, ops, denseCache, quantizedCache };
inline constexpr const char* kPartNames[] = {"library", "ops", "dense", "quantized"};

struct Setting {
  Part part = Part::ops;
  bool isMetal = false;
  bool isCold = false;  // the scenario makes the device, and with it libraries and pipelines
  std::string folder;   // an empty one for files
};

// Leaves nothing but the device of a setting that is not cold. The first run fills the numbers in.
void runScenario(Session& session, const Setting& setting, Numbers& expected, Tally& tally);

}  // namespace mnk::inject
