// Runs a dispatch of a module that was compiled for checking, and fails it with everything that is found.
#pragma once
#include "Checking/Shadow.hpp"
#include "DispatchRunner.hpp"

namespace mnk::host {

// What a dispatch really touched, as addresses.
struct DispatchTrace {
  std::string name;
  std::array<ByteRanges, kAccessKinds.size()> touched;  // by AccessKind
};

// `sinceBarrier` holds the dispatches that nothing orders before this one, and receives this one.
Result<void> runChecked(const DispatchJob& job, std::vector<DispatchTrace>& sinceBarrier);

}  // namespace mnk::host
