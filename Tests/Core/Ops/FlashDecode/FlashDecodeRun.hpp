// A case on a device: operands between guards, and the check of what became of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "Harness/Seeded.hpp"
#include "Ops/Common/GuardedOperands.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"
#include "Ops/FlashDecode/FlashDecodeReference.hpp"

namespace mnk::test {

// A case with what it reads and what the reference makes of it, once for all devices.
struct PreparedFlashDecode {
  std::string name;
  FlashDecodeCase attend;
  OperandBytes inputs;
  std::vector<AttendedRow> expected;
  bool isForAnyDevice = false;
};
PreparedFlashDecode prepared(const FlashDecodeCase& attend, Seeded& random);

// A call that is planned for the device that runs it, or for one that nothing is known of: threadgroups and splits are
// others then.
struct FlashDecodeCall {
  FlashDecode op;
  bool isForAnyDevice = false;
};
Result<Plan> plan(const FlashDecodeCall& call);
Result<Plan> plan(const FlashDecodeCall& call, Device& device);

// How far results may be from the reference, relative in squares. Results are stored in a dtype; scores are rounded,
// by f32 or, in the matrix kernel, with operands of f16.
double allowedError(DType into, bool isByMatrix, double magnitude);

// Rows of results against the reference: those without keys are zero, the others near, NaN where NaN is due.
void expectRows(DType into, std::span<const std::byte> got, const std::vector<AttendedRow>& expected, bool isByMatrix);
void expectLogSumExp(std::span<const std::byte> got, const std::vector<AttendedRow>& expected, bool isByMatrix);
void expectPartials(std::span<const std::byte> sums, std::span<const std::byte> stats,
                    const std::vector<AttendedRow>& expected, bool isByMatrix);

class FlashDecodeRun {
 public:
  FlashDecodeRun(const std::shared_ptr<Device>& device, const PreparedFlashDecode& prepared, Seeded&);

  const FlashDecodeCall& op() const { return call_; }

  // Results are those of the reference; everything else is as it was.
  void expectAttended() const;
  // Bytes of all results, one after another.
  std::vector<std::byte> results() const;

 private:
  const PreparedFlashDecode* prepared_;
  GuardedOperands operands_;
  FlashDecodeCall call_;
};

// Encodes each case on every device, as planned for it and for any, and checks each; by the matrix kernel too, where
// it is.
void runOnEveryDevice(const std::vector<FlashDecodeCase>& cases);

}  // namespace mnk::test
