// Prints measurements as a table and as JSON, and the size of the shipped kernels.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "Measurement.hpp"

namespace mnk::bench {

// The device's library and the shader text.
struct ShippedSize {
  std::string origin;
  uint64_t functions = 0;
  uint64_t files = 0;
  uint64_t textBytes = 0;  // of all files; 0 if the folder does not exist

  static Result<ShippedSize> of(Device& device, const std::string& shaders);
};

struct DeviceReport {
  std::string kind, name;
  ShippedSize shipped;
  std::vector<Measurement> measurements;
};

void printHeading(const DeviceReport& report);
void print(const Measurement& measured);
Result<void> writeJSON(const std::string& path, const std::vector<DeviceReport>& reports);

}  // namespace mnk::bench
