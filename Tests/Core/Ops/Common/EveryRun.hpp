// Runs cases of an op on every device: a trial of each is encoded, many to a submission, and then judges what became of
// its operands.
#pragma once
#include <algorithm>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Support/EveryDevice.hpp"
#include "Support/Seeded.hpp"

namespace mnk::test {

template <typename Trial, typename Case>
void runTrials(const std::vector<Case>& cases, void (Trial::*judge)() const) {
  constexpr size_t kCasesPerSubmission = 64;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (size_t begin = 0; begin < cases.size(); begin += kCasesPerSubmission) {
      std::vector<Trial> trials;
      CommandEncoder encoder(device, "cases");
      for (size_t index = begin; index < std::min(cases.size(), begin + kCasesPerSubmission); ++index) {
        trials.emplace_back(device, cases[index], random);
        const Context context(cases[index].name);
        REQUIRE(encoder.encode(trials.back().op()));
      }
      REQUIRE(REQUIRE(encoder.commit()).wait());
      for (const Trial& trial : trials) (trial.*judge)();
    }
  });
}

}  // namespace mnk::test
