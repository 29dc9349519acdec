#include "Worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mnk::host {

namespace {

constexpr uint32_t kStacksPerBlock = 32;
// Staggered tops keep the hot frames of different lanes in different cache sets.
constexpr size_t kStagger = 576, kStaggerSteps = 29;
// A guard page catches an overflow. On systems without guards inside a mapping, each costs two mappings, and a process
// has about 65,000; guarding all stacks of large threadgroups would exhaust them on many cores.
constexpr uint32_t kStacksGuardedByMappings = 128;

#if defined(MAP_NORESERVE)
constexpr int kMapFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#else
constexpr int kMapFlags = MAP_PRIVATE | MAP_ANONYMOUS;
#endif

MNK_HOST_RUNTIME size_t pageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

MNK_HOST_RUNTIME size_t slotBytes() {
  return kLaneStackBytes + pageBytes();
}

MNK_HOST_RUNTIME void guard(char* page, uint32_t stack) {
#if defined(__linux__)
  constexpr int kInstallGuard = 102;  // MADV_GUARD_INSTALL, since Linux 6.13; older headers lack it
  if (madvise(page, pageBytes(), kInstallGuard) == 0) return;
#endif
  if (stack < kStacksGuardedByMappings) mprotect(page, pageBytes(), PROT_NONE);
}

MNK_HOST_RUNTIME bool addStacks(Worker* worker) {
  void* block = mmap(nullptr, slotBytes() * kStacksPerBlock, PROT_READ | PROT_WRITE, kMapFlags, -1, 0);
  if (block == MAP_FAILED) return false;
  worker->stackBlocks[worker->stackCount / kStacksPerBlock] = block;
  for (uint32_t i = kStacksPerBlock; i-- > 0;) {
    char* slot = static_cast<char*>(block) + slotBytes() * i;
    guard(slot, worker->stackCount);
    char* top = slot + slotBytes() - worker->stackCount % kStaggerSteps * kStagger;
    worker->stacks[worker->stackCount++] = top;
    giveBackStack(worker, top);
  }
  return true;
}

}  // namespace

MNK_HOST_RUNTIME sanitizer::StackRange stackOf(const Lane* lane) {
  constexpr size_t usable = kLaneStackBytes - kStaggerSteps * kStagger;
  return {static_cast<char*>(lane->stack) - usable, usable};
}

MNK_HOST_RUNTIME Worker* makeWorker() {
  void* memory = aligned_alloc(alignof(Worker), sizeof(Worker));
  if (!memory) return nullptr;
  memset(memory, 0, sizeof(Worker));
  Worker* worker = static_cast<Worker*>(memory);
  worker->arena = static_cast<char*>(aligned_alloc(kArenaAlignment, kArenaBytes));
  if (!worker->arena) {
    free(memory);
    return nullptr;
  }
  return worker;
}

MNK_HOST_RUNTIME void destroyWorker(Worker* worker) {
  for (uint32_t i = 0; i < worker->stackCount / kStacksPerBlock; ++i) {
    munmap(worker->stackBlocks[i], slotBytes() * kStacksPerBlock);
  }
  free(worker->arena);
  free(worker);
}

MNK_HOST_RUNTIME void* takeStack(Worker* worker) {
  if (worker->freeStackCount == 0 && !addStacks(worker)) return nullptr;
  return worker->freeStacks[--worker->freeStackCount];
}

MNK_HOST_RUNTIME void giveBackAllStacks(Worker* worker) {
  memcpy(worker->freeStacks, worker->stacks, sizeof worker->stacks[0] * worker->stackCount);
  worker->freeStackCount = worker->stackCount;
}

MNK_HOST_RUNTIME void resetArena(Worker* worker) {
  worker->arenaUsed = kRedzone;
  worker->userBytes = 0;
  sanitizer::forbid(worker->arena, kArenaBytes);
}

MNK_HOST_RUNTIME void openArena(Worker* worker) {
  sanitizer::allow(worker->arena, kArenaBytes);
}

MNK_HOST_RUNTIME void* allocateFromArena(Worker* worker, size_t bytes) {
  const size_t rounded = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  if (bytes > kMaxThreadgroupBytes || worker->userBytes + bytes > kMaxThreadgroupBytes) return nullptr;
  if (worker->arenaUsed + rounded + kRedzone > kArenaBytes) return nullptr;
  char* memory = worker->arena + worker->arenaUsed;
  worker->userBytes += bytes;
  worker->arenaUsed += rounded + kRedzone;
  if (worker->group.launch->poison) {
    // Volatile: ThreadSanitizer would see memset as one lane's write.
    sanitizer::allow(memory, rounded);
    volatile uint64_t* words = reinterpret_cast<volatile uint64_t*>(memory);
    for (size_t i = 0; i < rounded / sizeof(uint64_t); ++i) words[i] = ~uint64_t(0);
    sanitizer::forbid(memory, rounded);
  }
  sanitizer::allow(memory, bytes);
  check::addThreadgroupArray(memory, bytes);
  return memory;
}

}  // namespace mnk::host
