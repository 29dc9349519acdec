// A case of an op on a device: operands with known contents between guards, and the check of what became of them. The
// kit of an op consists of its case, a struct with a name, and of these functions:
//   makeOp(one, makeTensor)          the op, on tensors of the caller's making
//   fill(run, one, random)           sets the operands that the op reads
//   expectOutcome(run)               results are those of the reference, and everything else is as it was
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/EveryRun.hpp"
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

// Encodes each case on every device, many to a submission, and checks each.
template <typename Case>
void runOnEveryDevice(const std::vector<Case>& cases) {
  runCases(cases, &OpRun<Case>::expectResults);
}

// The op of a case on memory without a device.
template <typename Case>
auto planOp(const Case& one) {
  return makeOp(one, [](std::string_view, DType dtype, const Shape& shape, uint64_t shift) {
    return planTensor(dtype, shape, shift);
  });
}

}  // namespace mnk::test
