// Runs dispatches with guarded or full checking.
#pragma once
#include <functional>
#include <string_view>

#include "Checking/Shadow.hpp"
#include "HostSubmission.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "Support/Bytes.hpp"

namespace mnk::host {

// The addresses that a dispatch declares that it reads and writes.
struct DeclaredBytes {
  ByteRanges reads, writes;

  explicit DeclaredBytes(const Dispatch& dispatch);
  // Bytes that are written and not read. Empty if the dispatch counts fewer bytes than it declares: the kernel then
  // chooses which bytes to write, and the others keep their values.
  ByteRanges outputs(const Dispatch& dispatch) const;
};

// Exposes bytes that a dispatch does not write, or reads before writing them.
void poison(const ByteRanges& outputs);

// "buffer 1 + 640": the binding that contains the address, or the nearest one, among those that start in the range.
std::string nameOfByte(const Dispatch& dispatch, uint64_t address, ByteRanges::Range among = {0, ~uint64_t(0)});

// Turns a processor trap in a kernel, such as a bad address, a division by zero or a stack overflow, into a returned
// value. For checked execution only: it replaces the process's handlers of these signals while it runs. Returns what
// ended the body, such as "a bad address", or an empty string if it returned. After a trap, nothing that the body's
// frames own is released. Traps on other threads go to the previous handler.
std::string_view runCatchingTraps(const std::function<void()>& body);

// The error when there is not enough memory for `what`.
Error noMemoryToCheck(const DispatchJob& job, std::string_view what);

// Runs a dispatch on poisoned outputs and fails it if it changes a byte that it does not declare as written: in its
// bindings, close around them, or in the canaries of their buffers.
Result<void> runGuarded(const DispatchJob& job);

// The addresses that a dispatch accessed.
struct DispatchTrace {
  std::string name;
  std::array<ByteRanges, kAccessKinds.size()> touched;  // by AccessKind
};

// Runs a dispatch of a module compiled for checking, and fails it with all findings. `sinceBarrier` holds the
// dispatches that no barrier orders before this one; this one is appended.
Result<void> runChecked(const DispatchJob& job, std::vector<DispatchTrace>& sinceBarrier);

}  // namespace mnk::host
