// Runs one threadgroup at a time: its lanes, their stacks and their threadgroup memory.
#pragma once
#include "Checks.h"

namespace mnk::host {

inline constexpr size_t kLaneStackBytes = sanitizer::kFrameGrowth * 64 * 1024;

inline constexpr size_t kArenaAlignment = 64;
// The gap between arrays. In checked execution it is as large as the largest array, to contain wrong indices.
inline constexpr size_t kRedzone = MNK_HOST_CHECKED ? kMaxThreadgroupBytes : 64;
// Room for the largest threadgroup memory as arrays with gaps.
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

// The top of a stack for one lane, or null if there is no memory.
void* takeStack(Worker* worker);
inline MNK_HOST_RUNTIME void giveBackStack(Worker* worker, void* stack) {
  worker->freeStacks[worker->freeStackCount++] = stack;
}
// Called when no lane is running.
void giveBackAllStacks(Worker* worker);

// Clears the arena for a threadgroup.
void resetArena(Worker* worker);
void openArena(Worker* worker);  // called when the threadgroup is over
// Null if the threadgroup's memory would exceed the limit.
void* allocateFromArena(Worker* worker, size_t bytes);

inline MNK_HOST_RUNTIME uint64_t nextRandom(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

// Ends the dispatch with this message, from a lane.
[[noreturn]] void stopDispatch(Worker* worker, FaultKind kind, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
// Abandons the running lane and continues where the worker entered the threadgroup.
[[noreturn]] void leaveToMain(Worker* worker);
// Enters a lane on a new stack and returns when the threadgroup is over. False: no memory for the stack.
bool enterThreadgroup(Worker* worker, Lane* first);

}  // namespace mnk::host
