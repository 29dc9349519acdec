// The bytes that a dispatch says it reads and writes, as addresses.
#pragma once
#include "Devices/Host/Checking/ByteRanges.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::host {

struct DeclaredBytes {
  ByteRanges reads, writes;

  explicit DeclaredBytes(const Dispatch& dispatch);
};

// Fills what a dispatch declares as written and not as read, so that a byte which it leaves out or reads shows. A
// dispatch that counts fewer bytes than it declares chooses among them, and keeps what they hold.
void poisonOutputs(const Dispatch& dispatch, const DeclaredBytes& declared);

// "buffer 1 + 640": the binding that holds the address, or the nearest one.
std::string nameOfByte(const Dispatch& dispatch, uint64_t address);

}  // namespace mnk::host
