// A case on a device: operands with known contents between guards, and the check of what became of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "Harness/Seeded.hpp"
#include "Ops/Common/GuardedOperands.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"
#include "Ops/MultiRoPE/MultiRoPEReference.hpp"

namespace mnk::test {

// Whether a result may stand for what the reference says.
//   kept     Bits between equal dtypes. A converted NaN is any NaN, because processors disagree about payloads.
//   turned   Between (value - slack) and (value + slack), each rounded to the result's dtype. The slack is 1.5 * 2^-22
//            of the pair's size: 2^-23 for cosine and sine, as Rotary.h promises, and 2^-24 for each rounding,
//            which are of the magnitude, of its product with them, of the products with x and y, and of their sum. To
//            this comes the angle's error. A GPU may flush what is subnormal. Numbers that overflow on the way, and
//            pairs that are not finite, give NaN.
bool isAllowed(const TurnedElement& expected, DType from, DType into, uint64_t got);
// How far a turned element may be from its value, apart from its last rounding.
double slackOf(const TurnedElement& expected);

// Numbers around 1 of both signs, and any bit pattern now and then.
std::vector<std::byte> ropeElements(Seeded& random, DType dtype, uint64_t count);
// Numbers that no arithmetic by 1 and 0 can change: finite, and not zero, whose sign a sum may lose.
std::vector<std::byte> plainRopeElements(Seeded& random, DType dtype, uint64_t count);
double f32At(const std::vector<std::byte>& bytes, uint64_t element);

// What the reference says of an op that breaks no rule.
MultiRoPEOutcome outcomeOf(const MultiRoPE& op, const OperandMemory& memory);
// Results are that, which is returned.
MultiRoPEOutcome expectRotated(const MultiRoPE& op, const OperandMemory& memory);

// Operands are called "queries", "keys", "rotated queries", "rotated keys", "positions" and "offsets".
class MultiRoPERun : public GuardedOperands {
 public:
  MultiRoPERun(const std::shared_ptr<Device>& device, const MultiRoPECase& rope, Seeded& random);

  const MultiRoPE& op() const { return op_; }
  MultiRoPEOutcome expected() const { return outcomeOf(op_, memory()); }
  // Results are what the reference says; everything else is as it was.
  void expectRotated() const;

 private:
  std::string name_;
  MultiRoPE op_;
};

// Encodes an op by itself on a device, and waits for it.
void run(const std::shared_ptr<Device>& device, const MultiRoPE& op);
// Encodes each case on every device, many to a submission, and checks each.
void runOnEveryDevice(const std::vector<MultiRoPECase>& cases);

}  // namespace mnk::test
