// Finds dispatches of a command buffer that access the same bytes, at least one writing, without an ordering between
// them. It knows only what dispatches declare.
#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"

namespace softmetal {

struct DeclaredAccess {
  bool isUntracked = false;
  uint64_t begin = 0;  // the base address of the region
  mnk::Region region;
  bool isWrite = false;
  std::string kernel;
  std::string bufferName;
};

struct SoftFence;

// An access to a buffer that Metal does not track, as other command buffers of the queue see it.
struct UntrackedAccess {
  DeclaredAccess access;
  std::set<const SoftFence*> waitedFor;     // before it
  std::set<const SoftFence*> updatedSince;  // in its command buffer
};
// Describes the conflict with work of an earlier command buffer that may still run, if no fence orders them.
std::optional<std::string> conflictAcross(const UntrackedAccess& later, const UntrackedAccess& earlier);

class Hazards {
 public:
  // Describes the conflict, if the dispatch conflicts with an earlier one.
  std::optional<std::string> add(std::span<const DeclaredAccess> accesses);
  void barrier();
  // Orders later work after it, except for buffers that Metal does not track.
  void endEncoder();
  // Marks what is recorded so far, for a fence.
  size_t mark() const { return forgotten_ + untrackedEarlier_.size() + untrackedHere_.size(); }
  // Orders later work after everything before a mark of an earlier encoder.
  void orderAfter(size_t mark);
  void update(const SoftFence* fence);
  void waitFor(const SoftFence* fence) { waitedFor_.insert(fence); }
  std::vector<UntrackedAccess> takeUntracked() { return std::exchange(untracked_, {}); }

 private:
  std::vector<DeclaredAccess> unordered_;
  std::vector<DeclaredAccess> untrackedHere_;     // of this encoder
  std::vector<DeclaredAccess> untrackedEarlier_;  // of earlier ones
  size_t forgotten_ = 0;                          // removed from these, because a fence orders them
  std::vector<UntrackedAccess> untracked_;        // all of the command buffer
  std::set<const SoftFence*> waitedFor_;
};

// Whether two regions at these addresses share a byte.
bool overlap(uint64_t firstBegin, const mnk::Region& first, uint64_t secondBegin, const mnk::Region& second);

}  // namespace softmetal
