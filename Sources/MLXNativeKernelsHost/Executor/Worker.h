// Runs one threadgroup at a time: its lanes, their stacks and their threadgroup memory.
#pragma once
#include "Executor/Fiber.h"
#include "Executor/Module.h"

namespace mnk::host {

// Lanes run in any order and switch only where they must wait. A threadgroup starts as a plain loop over its lanes on
// one stack (a sweep). The first collective ends the sweep; from then on each lane is a fiber.
struct Simdgroup;

// A location in the .metal source.
struct Site {
  uint32_t line;
  uint32_t column;
  const char* file;
  static constexpr Site here(uint32_t line = __builtin_LINE(), uint32_t column = __builtin_COLUMN(),
                             const char* file = __builtin_FILE()) {
    return {line, column, file};
  }
  MNK_HOST_RUNTIME constexpr bool operator==(const Site& other) const {
    return line == other.line && column == other.column;
  }
};

struct Lane {
  FiberState fiber;
  Lane* next;  // the ring of its simdgroup
  Simdgroup* simdgroup;
  uint32_t index, bit;  // in the simdgroup
  uint32_t linear;      // in the threadgroup
  uint32_t position[3];
  void* stack;
  void* fakeStack;        // AddressSanitizer's
  void* sanitizerThread;  // ThreadSanitizer's
};

struct Simdgroup {
  uint32_t live, arrived;
  uint32_t ready;  // lanes that the inline switch may enter
  uint32_t started;
  uint32_t ordered;      // all ones in a random order: always call the scheduler
  uint32_t parity;       // which of the two mailboxes the next collective uses
  uint32_t tookPart[2];  // lanes that stored a value in each mailbox
  uint32_t index, lanes;
  uint32_t resume;  // the lane that continues after a threadgroup barrier
  bool atBarrier;
  Site site;
  void (*complete)(void* box, void* result, uint32_t live);
  Threadgroup* threadgroup;
  Lane* all;
  // A lane reaches collective k + 2 only after all lanes have read k, so two mailboxes are enough.
  alignas(64) unsigned char box[2][32 * 16];
  alignas(64) unsigned char result[2][16];
};

struct Threadgroup {
  Lane* lanes;
  Simdgroup* simdgroups;
  uint32_t count, live, waiting;  // simdgroups
  bool sweeping;
  bool laneExited;
  Site barrierSite;
  uint32_t barrierMemory;  // the memory that all lanes at the barrier order
  const Launch* launch;
  uint32_t position[3], origin[3], size[3];  // origin: of its first thread in the grid
  void* threadgroupMemory[kThreadgroupIndices];
  FiberState main;
  Worker* worker;
  struct Array {
    const void* declaration;
    void* address;
  } arrays[32];
  uint32_t arrayCount;
};

// What this thread is running. Built-in values are read when a lane starts, before its body.
struct Running {
  Lane* lane;
  Threadgroup* group;
  const Arguments* arguments;
  uint32_t position[3];
  uint32_t linear;
};

// The initial-exec model needs no call. Shared objects loaded later share a small reserve of such memory, enough for a
// few dozen, so a module compiled at run time keeps the default model.
#if defined(__ELF__) && !defined(MNK_HOST_LOADED_MODULE)
extern __thread Running running __attribute__((tls_model("initial-exec")));
#else
extern __thread Running running;
#endif

void threadgroupBarrier(Site site, uint32_t memory);
void* allocateThreadgroupArray(const void* declaration, size_t bytes, Site site);
void blockLane(Lane* lane);  // arrived but not last: run another lane
// A lane arrived where its simdgroup did not wait for it. Ends the sweep and returns, or fails the dispatch.
void arriveUnexpectedly(Lane* lane, Site site);
[[noreturn]] void unsetConstant(const char* name, uint32_t index, const char* file, uint32_t line);
// The argument is unbound or being recorded; when recording, returns dummy memory.
void* unboundArgument(ArgumentKind kind, uint32_t index);
void recordAbsentArgument();
// Random bits, from the dispatch's seed, for results that Metal leaves open.
uint32_t drawPerturbation();

MNK_HOST_RUNTIME sanitizer::StackRange stackOf(const Lane* lane);

MNK_HOST_RUNTIME MNK_HOST_INLINE void switchLanes(Lane* from, Lane* to) {
  running.lane = to;
#if MNK_HOST_ASAN
  sanitizer::leavingFor(&from->fakeStack, stackOf(to));
#endif
  sanitizer::becomeThread(to->sanitizerThread);
  MNK_HOST_SWITCH(&from->fiber, &to->fiber);
#if MNK_HOST_ASAN
  sanitizer::cameFrom(from->fakeStack);
#endif
}

// Stores a value. When every live lane has done so, the last one runs Op; all return the same mailbox.
template <class T, class Op>
MNK_HOST_HOOK T* meet(T value, Site site, T*& result) {
  static_assert(sizeof(T) <= 16);
  Lane* me = running.lane;
  Simdgroup* group = me->simdgroup;
  if (group->arrived == 0) {
    group->site = site;
    group->complete = &Op::template run<T>;
  } else if (__builtin_expect(!(group->site == site), 0)) {
    arriveUnexpectedly(me, site);
    group->site = site;
    group->complete = &Op::template run<T>;
  }
  const uint32_t parity = group->parity;
  T* box = reinterpret_cast<T*>(group->box[parity]);
  result = reinterpret_cast<T*>(group->result[parity]);
  box[me->index] = value;
  group->arrived |= me->bit;
  if (__builtin_expect(group->arrived != group->live, 1)) {
    Lane* next = me->next;
    if (__builtin_expect(group->ready & ~group->arrived & next->bit, 1)) {
      switchLanes(me, next);
    } else {
      blockLane(me);
    }
  } else {
    Op::template run<T>(box, result, group->live);
    group->tookPart[parity] = group->live;
    group->arrived = 0;
    group->parity ^= 1;
  }
  return box;
}

// Runs lanes first ..< last of a threadgroup until a collective ends the sweep. Values that a lane reads at its start
// are stored only when they change, because these stores dominate the cost of a kernel that moves a few bytes.
class LaneLoop {
 public:
  MNK_HOST_HOOK LaneLoop(Threadgroup* group, uint32_t first, uint32_t last)
      : group_(group), linear_(first), last_(last) {
    const Lane& lane = group->lanes[first];
    x_ = lane.position[0];
    running.position[1] = lane.position[1];
    running.position[2] = lane.position[2];
  }
  MNK_HOST_HOOK bool more() const {
    if (linear_ >= last_) return false;
    Running& now = running;
    now.lane = group_->lanes + linear_;
    now.position[0] = x_;
    now.linear = linear_;
    return true;
  }
  MNK_HOST_HOOK void advance() {
    linear_ = group_->sweeping ? linear_ + 1 : last_;
    if (__builtin_expect(++x_ == group_->size[0], 0)) beginRow();
  }

 private:
  MNK_HOST_HOOK void beginRow() {
    x_ = 0;
    if (++running.position[1] != group_->size[1]) return;
    running.position[1] = 0;
    ++running.position[2];
  }

  Threadgroup* group_;
  uint32_t linear_, last_, x_;
};

}  // namespace mnk::host

namespace mnk::host::check {

// Checked execution (Module.h), as the executor and MetalStdlib use it. Without MNK_HOST_CHECKED every function here
// is empty.
#if MNK_HOST_CHECKED

inline MNK_HOST_RUNTIME const Watcher* watcher() {
  return running.group ? running.group->launch->watcher : nullptr;
}

inline MNK_HOST_RUNTIME __attribute__((noinline)) void simdgroupFence(uint32_t memory) {
  if (const Watcher* watch = watcher()) watch->simdgroupFence(watch->state, running.lane->simdgroup->index, memory);
}

inline MNK_HOST_RUNTIME void threadgroupFence(uint32_t memory) {
  if (const Watcher* watch = watcher()) watch->threadgroupFence(watch->state, memory);
}

inline MNK_HOST_RUNTIME void beginThreadgroup(uint64_t index, void* arena, size_t bytes) {
  if (const Watcher* watch = watcher()) watch->beginThreadgroup(watch->state, index, arena, bytes);
}

inline MNK_HOST_RUNTIME void endThreadgroup() {
  if (const Watcher* watch = watcher()) watch->endThreadgroup(watch->state);
}

inline MNK_HOST_RUNTIME void addThreadgroupArray(const void* address, size_t bytes) {
  if (const Watcher* watch = watcher()) watch->addThreadgroupArray(watch->state, address, bytes);
}

void mistake(const char* file, uint32_t line, const char* format, ...) __attribute__((format(printf, 3, 4)));
// For errors for which the compiler provides no line: uses the caller's return address.
void mistakeAt(const void* place, const char* text);
// For errors after which the lane cannot continue: what follows would corrupt its stack or trap.
void endHere();

inline MNK_HOST_RUNTIME __attribute__((noinline)) void vectorOverflow(const char* text) {
  mistakeAt(__builtin_return_address(0), text);
}
inline MNK_HOST_RUNTIME __attribute__((noinline)) void vectorDivision() {
  mistakeAt(__builtin_return_address(0), "an element of a vector is divided by zero");
  endHere();
}

// An atomic operation of the kernel, reported by the function that performs it.
void atomicAccess(AccessKind kind, const volatile void* address, size_t bytes, const void* place);

inline MNK_HOST_RUNTIME bool tookPart(const void* mailbox, uint32_t source) {
  const Simdgroup* group = running.lane->simdgroup;
  return source < 32 && group->tookPart[mailbox == group->box[0] ? 0 : 1] >> source & 1;
}

// A lane reads another lane's value: that lane must have taken part.
inline MNK_HOST_RUNTIME __attribute__((noinline)) void shuffleSource(const void* mailbox, uint32_t source, Site site) {
  if (tookPart(mailbox, source)) return;
  mistake(site.file, site.line, "lane %u takes the value of lane %u, which does not take part", running.lane->index,
          source);
}

#else

inline void threadgroupFence(uint32_t) {}
inline void beginThreadgroup(uint64_t, void*, size_t) {}
inline void endThreadgroup() {}
inline void addThreadgroupArray(const void*, size_t) {}

#endif

}  // namespace mnk::host::check

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
