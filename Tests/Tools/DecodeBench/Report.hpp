// Measurements as a table for people and as JSON for programs, and the size of what is shipped.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "Measurement.hpp"

namespace mnk::bench::decode {

// The library that the device runs, and the text of the shaders.
struct ShippedSize {
  std::string origin;
  uint64_t functions = 0;
  uint64_t files = 0;
  uint64_t textBytes = 0;  // of all files; 0 where the folder is not there

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

}  // namespace mnk::bench::decode
