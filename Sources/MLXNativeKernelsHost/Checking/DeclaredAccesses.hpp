// The bytes that a dispatch says it reads and writes, as addresses.
#pragma once
#include "MLXNativeKernels/Dispatch.hpp"
#include "Support/ByteRanges.hpp"

namespace mnk::host {

struct DeclaredBytes {
  ByteRanges reads, writes;

  explicit DeclaredBytes(const Dispatch& dispatch);
  // What is written and not read. None where the dispatch counts fewer bytes than it declares: then it chooses among
  // them, and they keep what they hold.
  ByteRanges outputs(const Dispatch& dispatch) const;
};

// So that a byte which a dispatch leaves out, or reads before it has written it, shows.
void poison(const ByteRanges& outputs);

// "1 + 640", "0 - 4"
std::string withOffset(uint32_t index, int64_t offset);

// "buffer 1 + 640": the binding that holds the address, or the nearest one, of those that start in the given range.
std::string nameOfByte(const Dispatch& dispatch, uint64_t address, ByteRanges::Range among = {0, ~uint64_t(0)});

}  // namespace mnk::host
