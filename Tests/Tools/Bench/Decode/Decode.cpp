#include "Decode.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "MLXNativeKernels/HostDevice.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr double kLargestDifference = 1e-2;  // far more than f16 results differ by

std::string ratio(double seconds, std::optional<double> other) {
  return other && *other > 0 ? fmt::format("{:.2f}", seconds / *other) : "-";
}

void print(const Measurement& m) {
  const DecodeCase& shape = m.shape;
  const std::string latent = shape.latentDim != 0 ? fmt::format("{}+", shape.latentDim) : "";
  fmt::print("{:>7} {:>7} {:>6} {:>7} {:>5}  {:<42} {:>10} {:>9} {:>10} {:>8.2f} {:>8.0f} {:>8} {:>11} {:>8} {:>11}\n",
             nameOf(shape.storage), fmt::format("{}/{}", shape.heads(), shape.kvHeads),
             fmt::format("{}{}", latent, shape.headDim), shape.length, shape.rows, m.kernel, m.dispatches,
             bytesText(shape.bytes()), fmt::format("{:.1f} us", m.seconds * 1e6),
             static_cast<double>(shape.bytes()) / m.seconds / 1e9,
             static_cast<double>(shape.operations()) / m.seconds / 1e9, ratio(m.seconds, m.readSeconds),
             ratio(m.seconds, m.multiplySeconds), ratio(m.seconds, m.plainSeconds),
             m.difference ? fmt::format("{:.1e}", *m.difference) : "-");
  std::fflush(stdout);
}

// What `make compare` reads.
std::string json(const Measurement& m) {
  return fmt::format(R"({{"storage": "{}", "length": {}, "bytes": {}, "seconds": {:.6g}}})", nameOf(m.shape.storage),
                     m.shape.length, m.shape.bytes(), m.seconds);
}

void writeJSON(const std::string& path, const std::vector<std::string>& devices) {
  std::ofstream file(path);
  file << fmt::format("[{}]\n", fmt::join(devices, ",\n")) << std::flush;
  if (file) return;
  throw Error{.op = "bench",
              .what = "the results cannot be written",
              .got = path,
              .expected = "a file that can be made or replaced",
              .fix = "Name another file after --json."};
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

// False if something is wrong. Adds the device's measurements in JSON.
bool measureAll(const std::shared_ptr<Device>& device, const DecodeOptions& options,
                std::vector<std::string>& devices) {
  const auto library = need(device->registry().shippedLibrary());
  fmt::print("{}; kernels from {}: {} functions\n", device->name(), library->origin().text(),
             library->functionNames().size());
  fmt::print("{:>7} {:>7} {:>6} {:>7} {:>5}  {:<42} {:>10} {:>9} {:>10} {:>8} {:>8} {:>8} {:>11} {:>8} {:>11}\n",
             "storage", "heads", "d", "length", "rows", "kernel", "dispatches", "bytes", "time", "GB/s", "GFLOP/s",
             "to read", "to multiply", "to plain", "difference");
  bool good = true;
  std::vector<std::string> measurements;
  for (const DecodeCase& shape : options.cases()) {
    try {
      const Measurement measured = measure(device, shape, options);
      print(measured);
      measurements.push_back(json(measured));
      if (measured.difference && !(*measured.difference <= kLargestDifference)) {
        fmt::print(stderr, "The results above differ from those of plain C++, so their times do not compare.\n");
        good = false;
      }
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.message());
      good = false;
    }
  }
  fmt::print("\n");
  devices.push_back(
      fmt::format(R"({{"device": "{}", "measurements": [{}]}})", device->name(), fmt::join(measurements, ",\n  ")));
  return good;
}

}  // namespace

bool measureDecode(const DecodeOptions& options) {
  bool good = true;
  std::vector<std::string> devices;
  auto all = Device::all();
  std::erase_if(all, [&](const auto& one) { return !options.device.empty() && one->kind() != options.device; });
  if (all.empty()) {
    throw Error{.op = "bench",
                .what = "there is no such device here",
                .got = options.device,
                .expected = "host or metal",
                .fix = "Leave --device out to measure all."};
  }
  fmt::print(
      "FlashDecode; medians of interleaved runs{}; a ratio is the op's time over the other's: a kernel that only reads "
      "the same bytes, one that only multiplies 8x8 matrices, and plain C++ over f16\n\n",
      options.isCold ? " over copies in turn" : "");
  for (auto device : all) {
    try {
      if (options.workers != 0 && device->kind() == "host") {
        device = need(host::makeDevice({.workers = options.workers}));
      }
      if (options.isTuning) {
        fmt::print("{}\n", device->name());
        tune(device, options.cases());
      } else {
        good = measureAll(device, options, devices) && good;
      }
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.message());
      good = false;
    }
  }
  if (!options.jsonFile.empty() && !options.isTuning) writeJSON(options.jsonFile, devices);
  return good;
}

std::vector<arguments::Option> DecodeOptions::table() {
  using namespace mnk::arguments;
  constexpr uint64_t kMost = 1 << 24;
  const auto positive = [](auto& into) { return number(into, 1, kMost); };
  std::vector<std::pair<std::string, Storage>> storages;
  for (const Storage& storage : allStorages()) storages.emplace_back(nameOf(storage), storage);
  const auto stored = [storages](Storage& into) { return choice(into, storages); };
  const std::vector<std::pair<std::string, AttentionOptions::Kernel>> kernels = {
      {"automatic", AttentionOptions::Kernel::automatic},
      {"vector", AttentionOptions::Kernel::vector},
      {"matrix", AttentionOptions::Kernel::matrix}};
  return {
      {"--device", "KIND", "host or metal alone", text(device)},
      {"--workers", "N", "threads of the Host device and of plain C++", positive(workers)},
      {"--json", "FILE", "writes the results there too", text(jsonFile)},
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
  if (axes.storages.empty() && axes.groups.empty() && axes.headDims.empty() && axes.lengths.empty() &&
      axes.latentDim == 0) {
    return shortList(axes.kvHeads, axes.rows);
  }
  const DecodeCase usual;
  Axes filled = axes;
  if (filled.storages.empty()) filled.storages = {{}, KVCodec{.bits = 4}};
  if (filled.groups.empty()) filled.groups = {usual.group};
  if (filled.headDims.empty()) filled.headDims = {usual.headDim};
  if (filled.lengths.empty()) filled.lengths = {usual.length};
  return filled.cases();
}

}  // namespace mnk::bench
