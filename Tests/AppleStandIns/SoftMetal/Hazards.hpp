// Finds dispatches of a command buffer that touch the same bytes, at least one writing, with nothing between them that
// orders them. It knows only what dispatches declare.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"

namespace softmetal {

struct SoftBuffer;

struct DeclaredAccess {
  const SoftBuffer* buffer = nullptr;
  bool isUntracked = false;
  uint64_t begin = 0;  // the address that the region counts from
  mnk::Region region;
  bool isWrite = false;
  std::string kernel;
  std::string bufferName;
};

class Hazards {
 public:
  // A sentence where the dispatch conflicts with an earlier one.
  std::optional<std::string> add(std::span<const DeclaredAccess> accesses);
  void barrier();
  void barrier(const SoftBuffer* buffer);
  // Orders what follows after it, except for buffers that Metal does not track.
  void endEncoder();
  // What is recorded so far, for a fence.
  size_t mark() const { return forgotten_ + untrackedEarlier_.size() + untrackedHere_.size(); }
  // Orders what follows after all that was recorded before a mark of an earlier encoder.
  void orderAfter(size_t mark);

 private:
  std::vector<DeclaredAccess> unordered_;
  std::vector<DeclaredAccess> untrackedHere_;     // of this encoder
  std::vector<DeclaredAccess> untrackedEarlier_;  // of earlier ones
  size_t forgotten_ = 0;                          // of these, because a fence orders them
};

// Whether two regions with their addresses have a byte in common.
bool overlap(uint64_t firstBegin, const mnk::Region& first, uint64_t secondBegin, const mnk::Region& second);

}  // namespace softmetal
