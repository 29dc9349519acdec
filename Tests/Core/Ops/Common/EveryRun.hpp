// Runs cases of an op on every device: a run of each is encoded, many to a submission, and then checks what became of
// its operands.
#pragma once
#include <algorithm>
#include <vector>

#include "Harness/EveryDevice.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

// `isRepeat`, if any, leaves out cases that would run on a device what another case runs there.
template <typename Run, typename Case>
void runCases(const std::vector<Case>& cases, void (Run::*check)() const,
              bool (*isRepeat)(const Case&, Device&) = nullptr) {
  constexpr size_t kCasesPerSubmission = 64;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (size_t begin = 0; begin < cases.size(); begin += kCasesPerSubmission) {
      std::vector<Run> runs;
      CommandEncoder encoder(device, "cases");
      for (size_t index = begin; index < std::min(cases.size(), begin + kCasesPerSubmission); ++index) {
        const Context context(cases[index].name);
        if (isRepeat && isRepeat(cases[index], *device)) continue;
        runs.emplace_back(device, cases[index], random);
        REQUIRE(encoder.encode(runs.back().op()));
      }
      REQUIRE(REQUIRE(encoder.commit()).wait());
      for (const Run& opRun : runs) (opRun.*check)();
    }
  });
}

}  // namespace mnk::test
