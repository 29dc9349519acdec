// Runs a dispatch of a module compiled for checking, and fails it with all findings.
#pragma once
#include "Checking/Shadow.hpp"
#include "DispatchRunner.hpp"

namespace mnk::host {

// The addresses that a dispatch accessed.
struct DispatchTrace {
  std::string name;
  std::array<ByteRanges, kAccessKinds.size()> touched;  // by AccessKind
};

// `sinceBarrier` holds the dispatches that no barrier orders before this one; this one is appended.
Result<void> runChecked(const DispatchJob& job, std::vector<DispatchTrace>& sinceBarrier);

}  // namespace mnk::host
