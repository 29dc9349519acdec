// Sets up and runs a threadgroup, and provides its lanes with arguments and constants.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "Executor/Module.h"
#include "Executor/Worker.h"

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

MNK_HOST_RUNTIME uint32_t laneCount(const uint32_t size[3]) {
  return size[0] * size[1] * size[2];
}

MNK_HOST_RUNTIME void layOutLanes(Worker* worker, const uint32_t size[3]) {
  if (memcmp(worker->shape, size, sizeof worker->shape) == 0) return;
  memcpy(worker->shape, size, sizeof worker->shape);
  const uint32_t total = laneCount(size);
  uint32_t position[3] = {0, 0, 0};
  for (uint32_t i = 0; i < total; ++i) {
    Lane& lane = worker->lanes[i];
    Simdgroup& group = worker->simdgroups[i / 32];
    group.all = &worker->lanes[i / 32 * 32];
    group.index = i / 32;
    group.lanes = total - i / 32 * 32 < 32 ? total - i / 32 * 32 : 32;
    group.threadgroup = &worker->group;
    lane.simdgroup = &group;
    lane.index = i % 32;
    lane.bit = 1u << lane.index;
    lane.linear = i;
    lane.next = &group.all[(lane.index + 1) % group.lanes];
    memcpy(lane.position, position, sizeof position);
    for (int axis = 0; axis < 3 && ++position[axis] == size[axis]; ++axis) position[axis] = 0;
  }
}

MNK_HOST_RUNTIME void placeInGrid(Threadgroup& group, const Launch& launch, uint64_t index) {
  group.position[0] = uint32_t(index % launch.groups[0]);
  group.position[1] = uint32_t(index / launch.groups[0] % launch.groups[1]);
  group.position[2] = uint32_t(index / launch.groups[0] / launch.groups[1]);
  for (int axis = 0; axis < 3; ++axis) {
    group.origin[axis] = group.position[axis] * launch.threadgroup[axis];
    const uint32_t left = launch.threads[axis] - group.origin[axis];
    group.size[axis] = left < launch.threadgroup[axis] ? left : launch.threadgroup[axis];
  }
}

MNK_HOST_RUNTIME void resetSimdgroups(Worker* worker, bool ordered) {
  Threadgroup& group = worker->group;
  for (uint32_t i = 0; i < group.count; ++i) {
    Simdgroup& simdgroup = worker->simdgroups[i];
    simdgroup.live = simdgroup.lanes == 32 ? ~0u : (1u << simdgroup.lanes) - 1;
    // While sweeping, no lane is expected to arrive, so the first collective takes the slow path.
    simdgroup.arrived = group.sweeping;
    simdgroup.site = {};
    simdgroup.ready = simdgroup.started = simdgroup.parity = 0;
    simdgroup.ordered = ordered ? ~0u : 0;
    simdgroup.atBarrier = false;
    simdgroup.resume = ordered ? uint32_t(nextRandom(worker->random) % simdgroup.lanes) : 0;
  }
}

MNK_HOST_RUNTIME void beginThreadgroup(Worker* worker, const Launch& launch, uint64_t index, Fault* fault) {
  Threadgroup& group = worker->group;
  worker->fault = fault;
  fault->kind = FaultKind::none;
  group.launch = &launch;
  group.worker = worker;
  group.lanes = worker->lanes;
  group.simdgroups = worker->simdgroups;
  placeInGrid(group, launch, index);
  layOutLanes(worker, group.size);
  group.count = group.live = (laneCount(group.size) + 31) / 32;
  group.waiting = 0;
  group.laneExited = false;
  group.arrayCount = 0;
  group.barrierMemory = ~0u;
  group.sweeping = launch.orderSeed == 0 && !sanitizer::kOneStackPerLane && !MNK_HOST_CHECKED;
  worker->random = (launch.orderSeed * 0x9E3779B97F4A7C15ull + index) | 1;
  worker->perturbation = (launch.orderSeed ^ (index + 1) * 0xD1B54A32D192ED03ull) * 0x9E3779B97F4A7C15ull | 1;
  for (int i = 0; i < 4; ++i) nextRandom(worker->perturbation);
  if (launch.orderSeed) {
    for (int i = 0; i < 4; ++i) nextRandom(worker->random);
  }
  resetSimdgroups(worker, launch.orderSeed != 0);
  resetArena(worker);
  running.group = &group;
  running.arguments = launch.arguments;
}

MNK_HOST_RUNTIME void runBegun(Worker* worker, Lane* first) {
  Threadgroup& group = worker->group;
  const uint32_t total = laneCount(group.size);
  if (sanitizer::kOneStackPerLane) {
    for (uint32_t i = 0; i < total; ++i) worker->lanes[i].sanitizerThread = sanitizer::makeThread();
  }
  if (!enterThreadgroup(worker, first)) {
    worker->fault->kind = FaultKind::outOfMemory;
    snprintf(worker->fault->text, sizeof worker->fault->text, "no memory for the stack of a lane");
  }
  if (sanitizer::kOneStackPerLane) {
    for (uint32_t i = 0; i < total; ++i) {
      // On behalf of a lane that a fault abandoned, so that the next user of its stack does not race with it.
      sanitizer::becomeThread(worker->lanes[i].sanitizerThread);
      sanitizer::publish(&group.live);
      sanitizer::becomeThread(worker->mainThread);
      sanitizer::destroyThread(worker->lanes[i].sanitizerThread);
    }
  }
  const bool lanesWereAbandoned = worker->fault->kind != FaultKind::none || worker->found;
  for (uint32_t i = 0; lanesWereAbandoned && i < total; ++i) {
    if (!worker->lanes[i].stack) continue;
    // Functions that never returned left poisoned zones on their stacks.
    const sanitizer::StackRange stack = stackOf(&worker->lanes[i]);
    sanitizer::allow(stack.low, stack.bytes);
  }
  if (lanesWereAbandoned || sanitizer::kOneStackPerLane) giveBackAllStacks(worker);
  sanitizer::observe(&group.live);
}

MNK_HOST_RUNTIME void runThreadgroup(Worker* worker, const Launch* launch, uint64_t index, Fault* fault) {
  beginThreadgroup(worker, *launch, index, fault);
  worker->found = nullptr;
  Threadgroup& group = worker->group;
  check::beginThreadgroup(index, worker->arena, kArenaBytes);
  for (uint32_t i = 0; i < kThreadgroupIndices; ++i) {
    const uint32_t bytes = launch->threadgroupBytes[i];
    group.threadgroupMemory[i] = bytes ? allocateFromArena(worker, bytes) : nullptr;
    if (bytes && !group.threadgroupMemory[i]) {
      fault->kind = FaultKind::stopped;
      snprintf(fault->text, sizeof fault->text, "more than 32 KiB of threadgroup memory");
    }
  }
  if (fault->kind == FaultKind::none) {
    const uint32_t first = launch->orderSeed ? uint32_t(nextRandom(worker->random) % group.count) : 0;
    runBegun(worker, &group.simdgroups[first].all[0]);
  }
  check::endThreadgroup();
  openArena(worker);
}

MNK_HOST_RUNTIME void reflect(Worker* worker, const RegisteredKernel* kernel, const Arguments* constants,
                              FoundArguments* found, Fault* fault) {
  found->count = 0;
  fault->kind = FaultKind::none;
  if (kernel->pointerCount == 0) return;
  Arguments arguments = *constants;
  memset(arguments.buffers, 0, sizeof arguments.buffers);
  arguments.recording = true;
  Launch launch{};
  launch.kernel = kernel;
  launch.arguments = &arguments;
  for (int axis = 0; axis < 3; ++axis) launch.threads[axis] = launch.groups[axis] = launch.threadgroup[axis] = 1;
  beginThreadgroup(worker, launch, 0, fault);
  memset(worker->group.threadgroupMemory, 0, sizeof worker->group.threadgroupMemory);
  worker->group.sweeping = false;
  worker->found = found;
  worker->argumentsSeen = 0;
  runBegun(worker, &worker->lanes[0]);
  worker->found = nullptr;
  openArena(worker);
}

MNK_HOST_RUNTIME void countRecorded(Worker* worker) {
  // All default arguments are evaluated before the body, so after the last one there is nothing left to record.
  if (++worker->argumentsSeen == worker->group.launch->kernel->pointerCount) leaveToMain(worker);
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

constinit const RegisteredKernel* registeredKernels = nullptr;
constinit const RegisteredConstant* registeredConstants = nullptr;

extern const char absentObject[4096];
alignas(64) const char absentObject[4096] = {};

MNK_HOST_RUNTIME void* unboundArgument(ArgumentKind kind, uint32_t index) {
  Worker* worker = running.group->worker;
  if (!worker->found) {
    const char* text = kind == ArgumentKind::buffer ? "buffer" : "threadgroup memory";
    stopDispatch(worker, FaultKind::stopped, "%s %u is not bound", text, index);
  }
  // Default arguments are evaluated in parameter order, including absent ones.
  const PointerParameter parameter = running.group->launch->kernel->pointers[worker->argumentsSeen];
  worker->found->list[worker->found->count++] = {kind, index, parameter};
  countRecorded(worker);
  return const_cast<char*>(absentObject);
}

MNK_HOST_RUNTIME void recordAbsentArgument() {
  countRecorded(running.group->worker);
}

MNK_HOST_RUNTIME uint32_t drawPerturbation() {
  return uint32_t(nextRandom(running.group->worker->perturbation) >> 32);
}

MNK_HOST_RUNTIME void unsetConstant(const char* name, uint32_t index, const char* file, uint32_t line) {
  stopDispatch(running.group->worker, FaultKind::stopped,
               "function constant %s (index %u, %s:%u) is read but the pipeline has no value for it", name, index, file,
               line);
}

MNK_HOST_RUNTIME void* allocateThreadgroupArray(const void* declaration, size_t bytes, Site site) {
  Threadgroup& group = *running.group;
  void* memory = allocateFromArena(group.worker, bytes);
  if (!memory || group.arrayCount == sizeof group.arrays / sizeof group.arrays[0]) {
    stopDispatch(group.worker, FaultKind::stopped, "more than 32 KiB of threadgroup memory: %s:%u", site.file,
                 site.line);
  }
  group.arrays[group.arrayCount++] = {declaration, memory};
  return memory;
}

const Module& programModule() {
  static constexpr Module module{kModuleVersion,     sizeof(Module),       MNK_HOST_CHECKED != 0,
                                 &registeredKernels, &registeredConstants, &makeWorker,
                                 &destroyWorker,     &runThreadgroup,      &reflect};
  return module;
}

}  // namespace mnk::host
