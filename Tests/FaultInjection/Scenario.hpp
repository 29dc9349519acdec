// A typical use of the library, from tensors to a saved cache, with checks that hold whichever allocation fails: a call
// succeeds, or reports outOfMemory without changing anything and succeeds when it is repeated.
#pragma once
#include <map>
#include <stdexcept>
#include <vector>

#include "Session.hpp"

namespace mnk::inject {

// A failed check.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Tally {
  uint64_t succeeded = 0, failed = 0;
};

// The numbers read in a run without failures, by name.
using Numbers = std::map<std::string, std::vector<float>>;

// Each part is a separate scenario, so that few steps precede and follow the failing allocation.
enum class Part : uint8_t { library, ops, denseCache, quantizedCache, files };
inline constexpr Part kParts[] = {Part::library, Part::ops, Part::denseCache, Part::quantizedCache, Part::files};
inline constexpr const char* kPartNames[] = {"library", "ops", "dense", "quantized", "files"};

struct Setting {
  Part part = Part::ops;
  bool isMetal = false;
  bool isCold = false;  // the scenario makes the device, and with it libraries and pipelines
  std::string folder;   // an empty folder for files
};

// Leaves nothing behind except the device of a setting that is not cold. The first run fills in the numbers.
void runScenario(Session& session, const Setting& setting, Numbers& expected, Tally& tally);

}  // namespace mnk::inject
