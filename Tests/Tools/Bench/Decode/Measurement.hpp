// Times FlashDecode at a shape, interleaved with its baselines. Times are medians per run.
#pragma once
#include <memory>
#include <optional>

#include "Decode.hpp"

namespace mnk::bench {

// The work of a plan, from its dispatches.
struct ChosenWork {
  std::string kernel;  // the first function's name
  uint32_t splits = 0;
  uint64_t dispatches = 0;

  static ChosenWork of(const Plan& plan);
};

struct Measurement {
  DecodeCase shape;
  ChosenWork work;
  uint64_t bytes = 0;
  uint64_t runs = 0;
  double seconds = 0;
  std::optional<double> readSeconds = {};      // of a kernel that only reads the same number of bytes
  std::optional<double> multiplySeconds = {};  // of a kernel that only multiplies, with the same number of operations
  std::optional<double> plainSeconds = {};     // of plain C++ over f16
  std::optional<double> difference = {};       // the largest difference between its results and the op's, at f16

  double gigabytesPerSecond() const { return static_cast<double>(bytes) / seconds / 1e9; }
  double operationsPerSecond() const { return static_cast<double>(shape.operations()) / seconds; }
};

Measurement measure(const std::shared_ptr<Device>& device, const DecodeCase& shape, const DecodeOptions& options);

}  // namespace mnk::bench
