// Times FlashDecode at a shape, interleaved with what it is compared with. Times are medians for one run.
#pragma once
#include <memory>
#include <optional>

#include "DecodeCase.hpp"
#include "DecodeProblem.hpp"

namespace mnk::bench::decode {

struct Measurement {
  DecodeCase shape;
  ChosenWork work;
  uint64_t bytes = 0;
  uint64_t runs = 0;
  double seconds = 0;
  std::optional<double> readSeconds = {};      // of a kernel that reads as many bytes
  std::optional<double> multiplySeconds = {};  // of a kernel that only multiplies, as many operations
  std::optional<double> plainSeconds = {};     // of plain C++ over f16
  std::optional<double> difference = {};       // the largest between its results and the op's, at f16

  double gigabytesPerSecond() const { return static_cast<double>(bytes) / seconds / 1e9; }
  double operationsPerSecond() const { return static_cast<double>(shape.operations()) / seconds; }
};

struct MeasuringOptions {
  AttentionOptions attention = {};
  bool isCold = false;
  bool comparesPlain = false;
  double budget = 0.25;  // seconds for the op's own runs; there are five at least
};

Result<Measurement> measure(const std::shared_ptr<Device>& device, const DecodeCase& shape,
                            const MeasuringOptions& options);

// The median of each plan's times, all of them interleaved; infinity where there is no plan.
Result<std::vector<double>> medianSeconds(const std::shared_ptr<Device>& device,
                                          const std::vector<std::optional<Plan>>& plans, double budget);

}  // namespace mnk::bench::decode
