// Prints measurements as a table and as JSON.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "Measurement.hpp"

namespace mnk::bench {

struct DeviceReport {
  std::string kind, name, origin;  // where its shipped kernels are from
  uint64_t functions = 0;          // of these
  std::vector<Measurement> measurements = {};

  explicit DeviceReport(Device& device);
};

void printHeading(const DeviceReport& report);
void print(const Measurement& measured);
void writeJSON(const std::string& path, const std::vector<DeviceReport>& reports);

}  // namespace mnk::bench
