// A case on a device: operands with known contents between guards, and the check of what became of them.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "Harness/GuardedTensor.hpp"
#include "Harness/Seeded.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"
#include "Ops/MultiRoPE/MultiRoPEReference.hpp"

namespace mnk::test {

// Whether a result may stand for what the reference says.
//   kept     Bits between equal dtypes. A converted NaN is any NaN, because processors disagree about payloads.
//   turned   Between (value - slack) and (value + slack), each rounded to the result's dtype. The slack is 1.5 * 2^-22
//            of the pair's size: 2^-23 for cosine and sine, as RotaryAngle.h promises, and 2^-24 for each rounding,
//            which are of the magnitude, of its product with them, of the products with x and y, and of their sum. To
//            this comes the angle's error: frequencies are powers by repeated multiplication in double, so that of
//            pair p may be wrong by (2p + 8) 2^-53 of itself. A GPU may flush what is subnormal. Numbers that overflow
//            on the way, and pairs that are not finite, give no number.
bool isAllowed(const TurnedElement& expected, DType from, DType into, uint64_t got);
// How far a turned element may be from its value, apart from its last rounding.
double slackOf(const TurnedElement& expected);

// Numbers around 1 of both signs, and any bit pattern now and then.
std::vector<std::byte> ropeElements(Seeded& random, DType dtype, uint64_t count);
// Numbers that no arithmetic by 1 and 0 can change: finite, and not zero, whose sign a sum may lose.
std::vector<std::byte> plainRopeElements(Seeded& random, DType dtype, uint64_t count);
double f32At(const std::vector<std::byte>& bytes, uint64_t element);

class MultiRoPERun {
 public:
  MultiRoPERun(const std::shared_ptr<Device>& device, const MultiRoPECase& rope, Seeded& random);

  const MultiRoPE& op() const { return op_; }
  // Contents of the test's own choosing, in place of random ones: "queries", "keys", "positions" or "offsets".
  void set(std::string_view name, std::span<const std::byte> bytes);
  std::vector<std::byte> before(std::string_view name) const;
  std::vector<std::byte> now(std::string_view name) const;
  // What was there before is there again.
  void restore() const;

  // Results are what the reference says; everything else is as it was.
  void expectRotated() const;
  void expectUntouched() const;
  MultiRoPEOutcome expected() const;

 private:
  struct Operand {
    std::string name;
    GuardedTensor memory;
    std::vector<std::byte> before;
  };
  const Operand* find(std::string_view name) const;
  const Operand& holding(const HeadsView& view) const;

  std::string name_;
  std::vector<Operand> operands_;
  MultiRoPE op_;
};

// Encodes an op by itself on a device, and waits for it.
void run(const std::shared_ptr<Device>& device, const MultiRoPE& op);
// Encodes each case on every device, many to a submission, and checks each.
void runOnEveryDevice(const std::vector<MultiRoPECase>& cases);
void runOnEveryDevice(const MultiRoPECase& rope);

}  // namespace mnk::test
