// The addresses that a dispatch declares that it reads and writes.
#pragma once
#include "MLXNativeKernels/Dispatch.hpp"
#include "Support/Bytes.hpp"

namespace mnk::host {

struct DeclaredBytes {
  ByteRanges reads, writes;

  explicit DeclaredBytes(const Dispatch& dispatch);
  // Bytes that are written and not read. Empty if the dispatch counts fewer bytes than it declares: the kernel then
  // chooses which bytes to write, and the others keep their values.
  ByteRanges outputs(const Dispatch& dispatch) const;
};

// Exposes bytes that a dispatch does not write, or reads before writing them.
void poison(const ByteRanges& outputs);

// "1 + 640", "0 - 4"
std::string withOffset(uint32_t index, int64_t offset);

// "buffer 1 + 640": the binding that contains the address, or the nearest one, among those that start in the range.
std::string nameOfByte(const Dispatch& dispatch, uint64_t address, ByteRanges::Range among = {0, ~uint64_t(0)});

}  // namespace mnk::host
