#include "Tuning.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "DecodeProblem.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Support/Errors.hpp"

namespace mnk::bench {

namespace {

constexpr double kBudget = 0.5;  // seconds of device time per case

// Enough copies to exceed a device's caches, so that memory is read.
uint32_t copiesOf(const DecodeCase& of) {
  constexpr uint64_t kCold = 256 << 20;
  const uint64_t bytes = std::max<uint64_t>(2 * of.kvHeads * of.length * (of.headDim + of.valueDim()), 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(kCold / bytes, 1, 16));
}

}  // namespace

Result<void> tune(const std::shared_ptr<Device>& device, std::vector<DecodeCase> cases) {
  std::erase_if(cases, [](const DecodeCase& each) { return each.rows > FlashDecode::kRowsPerPass; });  // no choices
  double logarithms = 0;
  for (const DecodeCase& each : cases) {
    auto problem = DecodeProblem::make(device, each, device->kind() == "host" ? 1 : copiesOf(each));
    if (!problem) return std::move(problem).error();
    auto measured = measureFlashDecode(device, problem->ops, kBudget);
    if (!measured) return std::move(measured).error();
    const double gain = measured->plannedSeconds / measured->fastestSeconds;
    logarithms += std::log(gain);
    fmt::print("{}\n  {:>9.1f} us  {}\n", measured->workload.text(), measured->plannedSeconds * 1e6,
               measured->planned.text());
    if (measured->fastest != measured->planned) {
      fmt::print("  {:>9.1f} us  {}, {:.2f} times as fast\n", measured->fastestSeconds * 1e6, measured->fastest.text(),
                 gain);
    }
    std::fflush(stdout);
  }
  if (!cases.empty()) {
    fmt::print("\nMeasured choices are {:.2f} times as fast as the table's, on the geometric mean of {}.\n\n",
               std::exp(logarithms / static_cast<double>(cases.size())), countText(cases.size(), "case"));
  }
  return {};
}

}  // namespace mnk::bench
