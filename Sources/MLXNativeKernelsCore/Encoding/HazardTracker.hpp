// Knows what the dispatches since the last barrier read and wrote, and whether the next one must wait for them:
// read after write, write after read and write after write, byte for byte.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "Support/ByteRanges.hpp"

namespace mnk {

// Bytes that a dispatch reads or writes.
struct Touched {
  const void* space = nullptr;
  Region region;  // offset counts from the start of the space
  bool isWrite = false;
  bool isWhole = false;  // a write that reaches every byte, not some that only the kernel knows
};

// Adds what a dispatch touches outside of these buffers, its reads before its writes.
void addTouched(const Dispatch& dispatch, std::span<const Buffer* const> except, std::vector<Touched>& to);

class HazardTracker {
 public:
  bool conflicts(std::span<const Binding> bindings) const;
  void add(std::span<const Binding> bindings);
  void clear() { touched_.clear(); }

 private:
  std::vector<Touched> touched_;
};

// Whether two sets of rows in one space share a byte. Exact when one of them is a plain range or both have the same
// stride; otherwise ranges that enclose each other count as sharing.
bool overlap(const Region& a, const Region& b);

// Adds the region's bytes that lie in [from, to).
void addBytes(const Region& region, ByteRanges& bytes, uint64_t from = 0, uint64_t to = UINT64_MAX);

}  // namespace mnk
