// Knows what the dispatches since the last barrier read and wrote, and whether the next one must wait for them:
// read after write, write after read and write after write, byte for byte.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk {

class HazardTracker {
 public:
  bool conflicts(std::span<const Binding> bindings) const;
  void add(std::span<const Binding> bindings);
  void clear() { touched_.clear(); }

 private:
  struct Touched {
    const void* space;
    Region region;  // offset counts from the start of the space
    bool isWrite;
  };
  template <typename Visit>
  static void forEach(std::span<const Binding> bindings, Visit visit);

  std::vector<Touched> touched_;
};

// Whether two sets of rows in one space share a byte. Exact when one of them is a plain range or both have the same
// stride; otherwise ranges that enclose each other count as sharing.
bool overlap(const Region& a, const Region& b);

}  // namespace mnk
