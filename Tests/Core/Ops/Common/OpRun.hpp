// A case of an op on a device: operands with known contents between guards, and the check of what became of them. The
// kit of an op consists of its case, a struct with a name, and of these functions:
//   makeOp(one, makeTensor)          the op, on tensors of the caller's making
//   fill(run, one, random)           sets the operands that the op reads
//   expectOutcome(run)               results are those of the reference, and everything else is as it was
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/GuardedOperands.hpp"

namespace mnk::test {

template <typename Case>
class OpRun : public GuardedOperands {
 public:
  OpRun(const std::shared_ptr<Device>& device, const Case& one, Seeded& random)
      : GuardedOperands(device), name_(one.name), op_(makeOp(one, maker())) {
    fill(*this, one, random);
  }

  const auto& op() const { return op_; }
  void expectResults() const {
    const Context context(name_);
    expectOutcome(*this);
  }

 private:
  std::string name_;
  decltype(makeOp(std::declval<Case>(), MakeNamedTensor())) op_;
};

// Encodes an op by itself on a device, and waits for it.
template <typename Op>
void run(const std::shared_ptr<Device>& device, const Op& op) {
  CommandEncoder encoder(device, "alone");
  REQUIRE(encoder.encode(op));
  REQUIRE(REQUIRE(encoder.commit()).wait());
}

// Encodes each case on every device, many to a submission, and checks each. `isLeftOut`, if any, tells which cases a
// device cannot run, or would run like another case.
template <typename Case>
void runOnEveryDevice(const std::vector<Case>& cases, bool (*isLeftOut)(const Case&, Device&) = nullptr) {
  constexpr size_t kCasesPerSubmission = 64;
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (size_t begin = 0; begin < cases.size(); begin += kCasesPerSubmission) {
      std::vector<OpRun<Case>> runs;
      CommandEncoder encoder(device, "cases");
      for (size_t index = begin; index < std::min(cases.size(), begin + kCasesPerSubmission); ++index) {
        const Context context(cases[index].name);
        if (isLeftOut && isLeftOut(cases[index], *device)) continue;
        runs.emplace_back(device, cases[index], random);
        REQUIRE(encoder.encode(runs.back().op()));
      }
      REQUIRE(REQUIRE(encoder.commit()).wait());
      for (const OpRun<Case>& opRun : runs) opRun.expectResults();
    }
  });
}

// The op of a case on memory without a device.
template <typename Case>
auto planOp(const Case& one) {
  return makeOp(one, [](std::string_view, DType dtype, const Shape& shape, uint64_t shift) {
    return planTensor(dtype, shape, shift);
  });
}

}  // namespace mnk::test
