// A device that runs nothing and reports a test's time for each FlashDecode.
#pragma once
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <set>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Runtime/ProbeTypes.h"

namespace mnk::test {

struct TimedDevice {
  std::shared_ptr<FakeDevice> device = FakeDevice::make();
  // The time of one call with a choice, which is derived from its dispatches.
  std::function<double(const FlashDecodeChoice&)> seconds = [](const FlashDecodeChoice&) { return 1e-5; };
  uint64_t submissions = 0;

  explicit TimedDevice(const DeviceProfile& profile = {.family = "timed", .cores = 32}, bool hasMatrices = true) {
    device->itsProfile = profile;
    device->shippedFunctions = {"ordersThreadgroups"};
    device->onRun = [this, hasMatrices](const FakeDevice::Recorded& recorded) {
      double sum = 0;
      for (const ReadyDispatch& ready : recorded.dispatches) {
        const std::string& function = ready.dispatch.kernel.function;
        if (function == "matrixLayoutProbe" && hasMatrices) tellMatrixLayout(ready.dispatch);
        const bool attends = function.starts_with("flashDecode") || function.starts_with("flashPrefill");
        if (attends && !function.starts_with("flashDecodeReduce")) {
          sum += seconds(choiceOf(ready.dispatch));
        }
      }
      submissions += sum > 0;
      return sum;
    };
  }
  TimedDevice(const TimedDevice&) = delete;

  static FlashDecodeChoice choiceOf(const Dispatch& dispatch) {
    const Grid& grid = dispatch.grid;
    FlashDecodeChoice choice{.simdgroups = grid.threadgroup[0] / 32, .splits = grid.extent[0]};
    unsigned headDim = 0;
    choice.usesMatrices = std::sscanf(dispatch.kernel.function.c_str(), "flashDecodeMatrix_%u_%u_%u", &headDim,
                                      &choice.rowsPerTile, &choice.tileKeys) == 3;
    choice.usesPrefill = dispatch.kernel.function.starts_with("flashPrefill");
    if (choice.usesPrefill) {
      const char* end = dispatch.kernel.function.c_str() + dispatch.kernel.function.find_last_of('_');
      choice.rowsPerTile = 8 * static_cast<uint32_t>(end[-1] - '0');  // blocks of rows
      choice.tileKeys = static_cast<uint32_t>(std::stoul(end + 1));
    }
    for (const Binding& binding : dispatch.buffers) choice.mergesInKernel |= binding.isZeroed;
    return choice;
  }

 private:
  // A row-major layout: each lane holds two neighbors.
  static void tellMatrixLayout(const Dispatch& dispatch) {
    auto* found = reinterpret_cast<uint32_t*>(dispatch.buffers[0].buffer->contents() + dispatch.buffers[0].offset);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      found[lane * kMatrixLayoutFindingsPerLane + kMatrixLayoutSecondIsNext] = 1;
      found[lane * kMatrixLayoutFindingsPerLane + kMatrixLayoutFirst] = 2 * lane;
    }
  }
};

// Slower the more a choice differs from the best; each property has its own factor.
inline std::function<double(const FlashDecodeChoice&)> fastestAt(const FlashDecodeChoice& best) {
  return [best](const FlashDecodeChoice& choice) {
    const auto apart = [](uint32_t a, uint32_t b) { return std::abs(std::log2(double(a)) - std::log2(double(b))); };
    double seconds =
        1e-5 * (1 + 0.3 * apart(choice.splits, best.splits) + 0.2 * apart(choice.simdgroups, best.simdgroups));
    if (choice.usesMatrices != best.usesMatrices || choice.usesPrefill != best.usesPrefill) seconds *= 2;
    const bool areTiled = choice.usesMatrices ? best.usesMatrices : choice.usesPrefill && best.usesPrefill;
    if (areTiled) {
      seconds *= 1 + 0.1 * apart(choice.rowsPerTile, best.rowsPerTile) + 0.1 * apart(choice.tileKeys, best.tileKeys);
    }
    if (choice.mergesInKernel != best.mergesInKernel && choice.splits > 1) seconds *= 1.1;
    return seconds;
  };
}

}  // namespace mnk::test
