#include "Decode.hpp"

#include <cstdio>

#include "Ceilings.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Measurement.hpp"
#include "Report.hpp"
#include "Timing.hpp"
#include "Tuning.hpp"

namespace mnk::bench {

namespace {

constexpr double kLargestDifference = 1e-2;  // far more than f16 results differ by

bool measureAll(const std::shared_ptr<Device>& device, const DecodeOptions& options, DeviceReport& results) {
  bool good = true;
  for (const DecodeCase& shape : options.cases()) {
    auto measured = measure(device, shape, options);
    if (!measured) {
      good = report(measured.error());
      continue;
    }
    print(*measured);
    if (measured->difference && !(*measured->difference <= kLargestDifference)) {
      std::fprintf(stderr, "The results above differ from those of plain C++, so their times do not compare.\n");
      good = false;
    }
    results.measurements.push_back(std::move(*measured));
  }
  std::printf("\n");
  return good;
}

bool measureDevice(std::shared_ptr<Device> device, const DecodeOptions& options, std::vector<DeviceReport>& reports) {
  if (options.workers != 0 && device->kind() == "host") {
    auto other = host::makeDevice({.workers = options.workers});
    if (!other) return report(other.error());
    device = *other;
  }
  DeviceReport results{.kind = std::string(device->kind()), .name = device->name()};
  if (options.isTuning) {
    std::printf("%s\n", results.name.c_str());
    auto tuned = tune(device, options.cases());
    return tuned || report(tuned.error());
  }
  auto shipped = ShippedSize::of(*device, options.shaders);
  if (!shipped) return report(shipped.error());
  results.shipped = *shipped;
  if (auto reads = planReads(device, 1, 1); !reads) {
    std::printf("How fast the device reads cannot be told: %s\n", reads.error().message().c_str());
  }
  printHeading(results);
  const bool good = measureAll(device, options, results);
  reports.push_back(std::move(results));
  return good;
}

}  // namespace

bool measureDecode(const DecodeOptions& options) {
  bool good = true, isThere = false;
  std::vector<DeviceReport> reports;
  std::printf(
      "FlashDecode; medians of interleaved runs%s; a ratio is the op's time over the other's: a kernel that only reads "
      "the same bytes, one that only multiplies 8x8 matrices, and plain C++ over f16\n\n",
      options.isCold ? " over copies in turn" : "");
  for (const auto& device : Device::all()) {
    if (!options.device.empty() && device->kind() != options.device) continue;
    isThere = true;
    good = measureDevice(device, options, reports) && good;
  }
  if (!isThere) {
    return report({.op = "bench",
                   .what = "there is no such device here",
                   .got = options.device,
                   .expected = "host or metal",
                   .fix = "Leave --device out to measure all."});
  }
  if (!options.jsonFile.empty() && !options.isTuning) {
    if (auto written = writeJSON(options.jsonFile, reports); !written) return report(written.error());
  }
  return good;
}

}  // namespace mnk::bench
