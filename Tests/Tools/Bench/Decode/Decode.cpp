#include "Decode.hpp"

#include <algorithm>
#include <cstdio>

#include "Ceilings.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Measurement.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Report.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr double kLargestDifference = 1e-2;  // far more than f16 results differ by

bool report(const Error& error) {
  fmt::print(stderr, "{}\n", error.message());
  return false;
}

bool measureAll(const std::shared_ptr<Device>& device, const DecodeOptions& options, DeviceReport& results) {
  bool good = true;
  for (const DecodeCase& shape : options.cases()) {
    try {
      const Measurement& measured = results.measurements.emplace_back(measure(device, shape, options));
      print(measured);
      if (measured.difference && !(*measured.difference <= kLargestDifference)) {
        std::fprintf(stderr, "The results above differ from those of plain C++, so their times do not compare.\n");
        good = false;
      }
    } catch (const Error& error) {
      good = report(error);
    }
  }
  std::printf("\n");
  return good;
}

// Measures what `prepare` would choose on a device, and the gain over the default table.
void tune(const std::shared_ptr<Device>& device, std::vector<DecodeCase> cases) {
  constexpr double kBudget = 0.5;             // seconds of device time per case
  constexpr uint64_t kColdBytes = 256 << 20;  // more than a GPU's caches hold, so that memory is read
  std::erase_if(cases, [](const DecodeCase& each) { return each.rows > FlashDecode::kRowsPerPass; });  // no choices
  double logarithms = 0;
  for (const DecodeCase& each : cases) {
    const uint64_t copies = std::clamp<uint64_t>(kColdBytes / each.bytes(), 1, 16);
    const DecodeProblem problem(device, each, device->kind() == "host" ? 1 : static_cast<uint32_t>(copies));
    const auto measured = need(measureFlashDecode(device, problem.ops, kBudget));
    const double gain = measured.plannedSeconds / measured.fastestSeconds;
    logarithms += std::log(gain);
    fmt::print("{}\n  {:>9.1f} us  {}\n", measured.workload.text(), measured.plannedSeconds * 1e6,
               measured.planned.text());
    if (measured.fastest != measured.planned) {
      fmt::print("  {:>9.1f} us  {}, {:.2f} times as fast\n", measured.fastestSeconds * 1e6, measured.fastest.text(),
                 gain);
    }
    std::fflush(stdout);
  }
  if (cases.empty()) return;
  fmt::print("\nMeasured choices are {:.2f} times as fast as the table's, on the geometric mean of {}.\n\n",
             std::exp(logarithms / static_cast<double>(cases.size())), countText(cases.size(), "case"));
}

bool measureDevice(std::shared_ptr<Device> device, const DecodeOptions& options, std::vector<DeviceReport>& reports) {
  if (options.workers != 0 && device->kind() == "host") device = need(host::makeDevice({.workers = options.workers}));
  if (options.isTuning) {
    fmt::print("{}\n", device->name());
    tune(device, options.cases());
    return true;
  }
  DeviceReport& results = reports.emplace_back(*device);
  try {
    planReads(device, 1, 1);
  } catch (const Error& error) {
    std::printf("How fast the device reads cannot be told: %s\n", error.message().c_str());
  }
  printHeading(results);
  return measureAll(device, options, results);
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
    try {
      good = measureDevice(device, options, reports) && good;
    } catch (const Error& error) {
      good = report(error);
    }
  }
  if (!isThere) {
    throw Error{.op = "bench",
                .what = "there is no such device here",
                .got = options.device,
                .expected = "host or metal",
                .fix = "Leave --device out to measure all."};
  }
  if (!options.jsonFile.empty() && !options.isTuning) writeJSON(options.jsonFile, reports);
  return good;
}

std::vector<arguments::Option> DecodeOptions::table() {
  using namespace mnk::arguments;
  constexpr uint64_t kMost = 1 << 24;
  const auto positive = [](auto& into) { return number(into, 1, kMost); };
  std::vector<std::pair<std::string, Storage>> storages;
  for (const Storage& storage : Storage::all()) storages.emplace_back(storage.text(), storage);
  const auto stored = [storages](Storage& into) { return choice(into, storages); };
  const std::vector<std::pair<std::string, AttentionOptions::Kernel>> kernels = {
      {"automatic", AttentionOptions::Kernel::automatic},
      {"vector", AttentionOptions::Kernel::vector},
      {"matrix", AttentionOptions::Kernel::matrix}};
  return {
      {"--device", "KIND", "host or metal alone", text(device)},
      {"--workers", "N", "threads of the Host device and of plain C++", positive(workers)},
      {"--json", "FILE", "writes the results there too", text(jsonFile)},
      {"--full", "", "every length, group, head dim and storage; lists narrow it", constant(isFull, true)},
      {"--lengths", "LIST", "positions of the sequence, such as 256,4096,65536", list(axes.lengths, positive)},
      {"--groups", "LIST", "query heads for each head of the cache", list(axes.groups, positive)},
      {"--dims", "LIST", "head dims", list(axes.headDims, positive)},
      {"--latent", "N", "elements of values that are the first part of keys too; --dims is the rest",
       positive(axes.latentDim)},
      {"--storage", "LIST", "f16, turbo2 to turbo8, mlx1-4", list(axes.storages, stored)},
      {"--kv-heads", "N", "heads of the cache (8)", positive(axes.kvHeads)},
      {"--rows", "N", "rows of queries (1)", positive(axes.rows)},
      {"--kernel", "NAME", "vector or matrix, where the device shall not choose; the Host device has no matrix kernel",
       choice(attention.kernel, kernels)},
      {"--splits", "N", "parts of the keys, where the device shall not choose", positive(attention.splits)},
      {"--cold", "", "turns between copies of the cache, more than processors keep close", constant(isCold, true)},
      {"--tune", "", "measures what the device could choose, and what that gains over the table",
       constant(isTuning, true)},
  };
}

std::vector<DecodeCase> DecodeOptions::cases() const {
  const bool isNarrowed = !axes.storages.empty() || !axes.groups.empty() || !axes.headDims.empty() ||
                          !axes.lengths.empty() || axes.latentDim != 0;
  if (!isFull && !isNarrowed) return shortList(axes.kvHeads, axes.rows);
  const DecodeCase usual;
  const Axes defaults = isFull
                            ? Axes::everything()
                            : Axes{{Storage::f16(), Storage::turbo(4)}, {usual.group}, {usual.headDim}, {usual.length}};
  Axes filled = axes;
  if (filled.storages.empty()) filled.storages = defaults.storages;
  if (filled.groups.empty()) filled.groups = defaults.groups;
  if (filled.headDims.empty()) filled.headDims = defaults.headDims;
  if (filled.lengths.empty()) filled.lengths = defaults.lengths;
  return filled.cases();
}

}  // namespace mnk::bench
