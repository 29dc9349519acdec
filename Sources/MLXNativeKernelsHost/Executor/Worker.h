// A worker runs one threadgroup at a time: its lanes, their stacks and their threadgroup memory.
#pragma once
#include "Checks.h"

namespace mnk::host {

inline constexpr size_t kLaneStackBytes = sanitizer::kFrameGrowth * 64 * 1024;

inline constexpr size_t kArenaAlignment = 64;
// Between arrays. In checked execution an index that is off by as much as the largest array stays in it.
inline constexpr size_t kRedzone = MNK_HOST_CHECKED ? kMaxThreadgroupBytes : 64;
// Room for the largest threadgroup memory, cut into arrays with gaps.
inline constexpr size_t kArenaBytes = kMaxThreadgroupBytes + 64 * (kArenaAlignment + kRedzone);

struct Worker {
  Threadgroup group;
  Simdgroup simdgroups[kMaxLanes / 32];
  Lane lanes[kMaxLanes];
  uint32_t shape[3];  // of the threadgroup that `lanes` is laid out for

  void* stacks[kMaxLanes];
  void* freeStacks[kMaxLanes];
  uint32_t stackCount, freeStackCount;
  void* stackBlocks[kMaxLanes / 32];

  char* arena;  // threadgroup memory
  size_t arenaUsed, userBytes;

  uint64_t random, perturbation;
  Fault* fault;
  FoundArguments* found;
  uint32_t argumentsSeen;

  sanitizer::StackRange mainStack;
  void* mainFakeStack;
  void* mainThread;
};

Worker* makeWorker();
void destroyWorker(Worker* worker);

// The top of a stack for one lane; null when there is no memory.
void* takeStack(Worker* worker);
inline MNK_HOST_RUNTIME void giveBackStack(Worker* worker, void* stack) {
  worker->freeStacks[worker->freeStackCount++] = stack;
}
// When no lane is running.
void giveBackAllStacks(Worker* worker);

// Empties the arena for a threadgroup.
void resetArena(Worker* worker);
void openArena(Worker* worker);  // the threadgroup is over
// Null when the threadgroup would hold more than the limit.
void* allocateFromArena(Worker* worker, size_t bytes);

inline MNK_HOST_RUNTIME uint64_t nextRandom(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

// Ends the dispatch with this text, from a lane.
[[noreturn]] void stopDispatch(Worker* worker, FaultKind kind, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
// Leaves the running lane for good and continues where the worker entered the threadgroup.
[[noreturn]] void leaveToMain(Worker* worker);
// Enters a lane on a fresh stack and returns when the threadgroup is over. False: no memory for the stack.
bool enterThreadgroup(Worker* worker, Lane* first);

}  // namespace mnk::host
