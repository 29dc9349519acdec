#include "Report.hpp"

#include <cstdio>
#include <fstream>

#include "MLXNativeKernels/Device.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

std::string ratio(double seconds, std::optional<double> other) {
  return other && *other > 0 ? fmt::format("{:.2f}", seconds / *other) : "-";
}

// JSON has no NaN and no infinity.
std::string number(double value) {
  return value - value == 0 ? fmt::format("{:.6g}", value) : "null";
}
std::string number(std::optional<double> value) {
  return value ? number(*value) : "null";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", c);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string json(const Measurement& m) {
  return fmt::format(
      R"({{"storage": {}, "heads": {}, "kvHeads": {}, "headDim": {}, "latentDim": {}, "length": {}, "rows": {}, "kernel": {}, )"
      R"("splits": {}, "dispatches": {}, "bytes": {}, "runs": {}, "seconds": {}, "gigabytesPerSecond": {}, )"
      R"("operations": {}, "readSeconds": {}, "multiplySeconds": {}, "plainSeconds": {}, "difference": {}}})",
      quoted(m.shape.storage.text()), m.shape.heads(), m.shape.kvHeads, m.shape.headDim, m.shape.latentDim,
      m.shape.length, m.shape.rows, quoted(m.work.kernel), m.work.splits, m.work.dispatches, m.bytes, m.runs,
      number(m.seconds), number(m.gigabytesPerSecond()), m.shape.operations(), number(m.readSeconds),
      number(m.multiplySeconds), number(m.plainSeconds), number(m.difference));
}

std::string json(const DeviceReport& report) {
  std::string text = fmt::format(R"(  {{"device": {}, "kind": {}, "functions": {}, "measurements": [)",
                                 quoted(report.name), quoted(report.kind), report.functions);
  for (size_t i = 0; i < report.measurements.size(); ++i) {
    text += (i ? ",\n    " : "\n    ") + json(report.measurements[i]);
  }
  return text + "]}";
}

}  // namespace

DeviceReport::DeviceReport(Device& device) : kind(device.kind()), name(device.name()) {
  const auto library = need(device.registry().shippedLibrary());
  origin = library->origin().text();
  functions = library->functionNames().size();
}

void printHeading(const DeviceReport& report) {
  fmt::print("{}; kernels from {}: {} functions\n", report.name, report.origin, report.functions);
  fmt::print("{:>7} {:>7} {:>6} {:>7} {:>5}  {:<42} {:>6} {:>10} {:>9} {:>10} {:>8} {:>8} {:>8} {:>11} {:>8} {:>11}\n",
             "storage", "heads", "d", "length", "rows", "kernel", "splits", "dispatches", "bytes", "time", "GB/s",
             "GFLOP/s", "to read", "to multiply", "to plain", "difference");
}

void print(const Measurement& m) {
  const std::string latent = m.shape.latentDim != 0 ? fmt::format("{}+", m.shape.latentDim) : "";
  const std::string dims = fmt::format("{}{}", latent, m.shape.headDim);
  fmt::print(
      "{:>7} {:>7} {:>6} {:>7} {:>5}  {:<42} {:>6} {:>10} {:>9} {:>10} {:>8.2f} {:>8.0f} {:>8} {:>11} {:>8} {:>11}\n",
      m.shape.storage.text(), fmt::format("{}/{}", m.shape.heads(), m.shape.kvHeads), dims, m.shape.length,
      m.shape.rows, m.work.kernel, m.work.splits, m.work.dispatches, bytesText(m.bytes),
      fmt::format("{:.1f} us", m.seconds * 1e6), m.gigabytesPerSecond(), m.operationsPerSecond() / 1e9,
      ratio(m.seconds, m.readSeconds), ratio(m.seconds, m.multiplySeconds), ratio(m.seconds, m.plainSeconds),
      m.difference ? fmt::format("{:.1e}", *m.difference) : "-");
  std::fflush(stdout);
}

void writeJSON(const std::string& path, const std::vector<DeviceReport>& reports) {
  std::ofstream file(path);
  file << "[\n";
  for (size_t i = 0; i < reports.size(); ++i) file << json(reports[i]) << (i + 1 < reports.size() ? ",\n" : "\n");
  file << "]\n";
  file.flush();
  if (file) return;
  throw Error{.op = "bench",
              .what = "the results cannot be written",
              .got = path,
              .expected = "a file that can be made or replaced",
              .fix = "Name another file after --json."};
}

}  // namespace mnk::bench
