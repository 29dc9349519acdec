#include "DecodeBench.h"

#include <cstdio>

#include "Arguments.hpp"
#include "Measurement.hpp"
#include "ReadCeiling.hpp"
#include "Report.hpp"
#include "Tuning.hpp"

using namespace mnk;
using namespace mnk::bench::decode;

namespace {

constexpr double kLargestDifference = 1e-2;  // far more than f16 results differ by

bool report(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return false;
}

bool measureAll(const std::shared_ptr<Device>& device, const Arguments& arguments, DeviceReport& results) {
  bool good = true;
  const MeasuringOptions options{
      .attention = arguments.options, .isCold = arguments.isCold, .comparesPlain = device->kind() == "host"};
  for (const DecodeCase& shape : arguments.cases) {
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

bool run(const Arguments& arguments) {
  bool good = true, isThere = false;
  std::vector<DeviceReport> reports;
  std::printf(
      "FlashDecode; medians of interleaved runs%s; a ratio is the op's time over the other's: a kernel that only reads "
      "as many bytes, one that only multiplies 8x8 matrices as often, and plain C++ over f16\n\n",
      arguments.isCold ? " over copies in turn" : "");
  for (const auto& device : Device::all()) {
    if (!arguments.device.empty() && device->kind() != arguments.device) continue;
    isThere = true;
    DeviceReport results{.kind = std::string(device->kind()), .name = device->name()};
    if (arguments.isTuning) {
      std::printf("%s\n", results.name.c_str());
      if (auto tuned = tune(device, arguments.cases); !tuned) good = report(tuned.error());
      continue;
    }
    auto shipped = ShippedSize::of(*device, arguments.shaders);
    if (!shipped) {
      good = report(shipped.error());
      continue;
    }
    results.shipped = *shipped;
    if (auto reads = planReads(device, 1, 1); !reads) {
      std::printf("How fast the device reads cannot be told: %s\n", reads.error().message().c_str());
    }
    printHeading(results);
    good = measureAll(device, arguments, results) && good;
    reports.push_back(std::move(results));
  }
  if (!isThere) {
    return report({.op = "decode-bench",
                   .what = "there is no such device here",
                   .got = arguments.device,
                   .expected = "host or metal",
                   .fix = "Leave --device out to measure all."});
  }
  if (!arguments.jsonFile.empty() && !arguments.isTuning) {
    if (auto written = writeJSON(arguments.jsonFile, reports); !written) return report(written.error());
  }
  return good;
}

}  // namespace

int decode_bench_run(int argc, char* const* argv) {
  auto arguments = Arguments::parse(argc, argv);
  if (!arguments) return report(arguments.error()) ? 0 : 2;
  if (arguments->wantsHelp) {
    std::fputs(Arguments::help(), stdout);
    return 0;
  }
  return run(*arguments) ? 0 : 1;
}
