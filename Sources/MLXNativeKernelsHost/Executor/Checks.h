// Checked execution (Watcher.h), as the executor and MetalStdlib use it. Without MNK_HOST_CHECKED every function here
// is empty.
#pragma once
#include "Lane.h"
#include "Watcher.h"

namespace mnk::host::check {

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
