// A typical use of the library through the C API, from tensors to a saved cache, with checks that hold whichever
// allocation fails: a call succeeds, or reports outOfMemory without changing anything and succeeds when it is repeated.
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace mnk::inject {

// A failed check.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Tally {
  uint64_t succeeded = 0, failed = 0;
};

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

// One part on a device.
class Scenario {
 public:
  static std::unique_ptr<Scenario> make(const Setting& setting);
  virtual ~Scenario() = default;

  // Leaves nothing behind except the device of a setting that is not cold. The first run fills in the numbers.
  virtual void run() = 0;
  // Releases what a failed run has left.
  virtual void clear() = 0;

  Tally tally;
};

}  // namespace mnk::inject
