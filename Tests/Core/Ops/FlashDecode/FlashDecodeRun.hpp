// A case on a device: operands between guards, and the check of what became of them.
#pragma once
#include <string>
#include <vector>

#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

// A case with what it reads and what the reference makes of it, once for all devices, and how it is planned.
struct PreparedFlashDecode {
  std::string name;
  FlashDecodeCase attend;
  OperandBytes inputs;
  std::vector<AttendedRow> expected;
  bool isForAnyDevice = false;  // for one that nothing is known of: threadgroups and splits are others then
  uint32_t simdgroups = 0;      // of a threadgroup, in place of those that are planned; 0: as planned
};
PreparedFlashDecode prepared(const FlashDecodeCase& attend, Seeded& random);

struct FlashDecodeCall {
  FlashDecode op;
  const PreparedFlashDecode* prepared;
};
Result<Plan> plan(const FlashDecodeCall& call);
Result<Plan> plan(const FlashDecodeCall& call, Device& device);
FlashDecodeCall makeOp(const PreparedFlashDecode& prepared, const MakeNamedTensor& makeTensor);

using FlashDecodeRun = OpRun<PreparedFlashDecode>;
void fill(FlashDecodeRun& run, const PreparedFlashDecode& prepared, Seeded&);
// Results are those of the reference; everything else is as it was.
void expectOutcome(const FlashDecodeRun& run);

// Rows of results against the reference: those without keys are zero, the others near, NaN where NaN is due.
void expectRows(DType into, std::span<const std::byte> got, const std::vector<AttendedRow>& expected, bool isByMatrix);
void expectLogSumExp(std::span<const std::byte> got, const std::vector<AttendedRow>& expected, bool isByMatrix);
void expectPartials(std::span<const std::byte> sums, std::span<const std::byte> stats,
                    const std::vector<AttendedRow>& expected, bool isByMatrix);

// Encodes each case on every device, as planned for it and for any, and checks each; by the matrix kernel too, where
// it is. With a number of simdgroups, only as planned for the device and for them.
void attendOnEveryDevice(const std::vector<FlashDecodeCase>& cases, uint32_t simdgroups = 0);

}  // namespace mnk::test
