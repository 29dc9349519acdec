// Chooses which lane runs next. A lane that returns starts the next one on its own stack.
#include <stdarg.h>
#include <stdio.h>

#include "Executor/Worker.h"

namespace mnk::host {

__thread Running running;

namespace {

constexpr char kBarrierAfterReturn[] = "threadgroup_barrier after a thread of the threadgroup has returned";

MNK_HOST_RUNTIME bool isOrdered(const Worker* worker) {
  return worker->group.launch->orderSeed != 0;
}

MNK_HOST_RUNTIME bool isStarted(const Lane* lane) {
  return lane->simdgroup->started & lane->bit;
}

MNK_HOST_RUNTIME void markStarted(Worker* worker, Lane* lane, void* stack) {
  lane->simdgroup->started |= lane->bit;
  if (!isOrdered(worker)) lane->simdgroup->ready |= lane->bit;
  lane->stack = stack;
}

[[noreturn]] void fiberMain();

MNK_HOST_RUNTIME bool startFiber(Worker* worker, Lane* lane) {
  void* stack = takeStack(worker);
  if (!stack) return false;
  markStarted(worker, lane, stack);
  lane->fiber = newFiber(stack, &fiberMain);
  return true;
}

MNK_HOST_RUNTIME void ensureStarted(Worker* worker, Lane* lane) {
  if (isStarted(lane) || startFiber(worker, lane)) return;
  const uint32_t* size = worker->group.size;
  stopDispatch(worker, FaultKind::outOfMemory, "no memory for the stacks of %u lanes", size[0] * size[1] * size[2]);
}

MNK_HOST_RUNTIME void goTo(Worker* worker, Lane* from, Lane* to) {
  ensureStarted(worker, to);
  switchLanes(from, to);
}

// For a lane that has returned: nothing returns to its stack.
[[noreturn]] MNK_HOST_RUNTIME void leaveTo(Worker* worker, Lane* to) {
  ensureStarted(worker, to);
  running.lane = to;
  sanitizer::leavingFor(nullptr, stackOf(to));
  sanitizer::becomeThread(to->sanitizerThread);
  FiberState unused;
  MNK_HOST_SWITCH(&unused, &to->fiber);
  __builtin_unreachable();
}

// A lane in the mask: the next one, or a random one in a random order.
MNK_HOST_RUNTIME Lane* pickLane(Worker* worker, Simdgroup* group, uint32_t mask, uint32_t after) {
  if (isOrdered(worker)) {
    uint32_t skip = uint32_t(nextRandom(worker->random) % uint32_t(__builtin_popcount(mask)));
    for (; skip > 0; --skip) mask &= mask - 1;
    return &group->all[__builtin_ctz(mask)];
  }
  const uint32_t later = after >= 31 ? 0 : mask & (~0u << (after + 1));
  return &group->all[__builtin_ctz(later ? later : mask)];
}

MNK_HOST_RUNTIME Lane* pickSimdgroup(Worker* worker, uint32_t after) {
  Threadgroup& group = worker->group;
  const uint32_t first = isOrdered(worker) ? uint32_t(nextRandom(worker->random) % group.count) : after + 1;
  for (uint32_t i = 0; i < group.count; ++i) {
    Simdgroup& candidate = group.simdgroups[(first + i) % group.count];
    if (candidate.live && !candidate.atBarrier) return &candidate.all[candidate.resume];
  }
  __builtin_unreachable();
}

// Lanes before this one have returned; lanes after it have not started.
MNK_HOST_RUNTIME void endSweep(Worker* worker, Lane* me) {
  Threadgroup& group = worker->group;
  group.sweeping = false;
  group.laneExited = me->linear > 0;
  void* stack = group.lanes[0].stack;
  group.simdgroups[0].started = group.simdgroups[0].ready = 0;  // the sweep ran as lane 0
  for (uint32_t i = 0; i < group.count; ++i) {
    Simdgroup& simdgroup = group.simdgroups[i];
    simdgroup.arrived = 0;
    if (i < me->simdgroup->index) simdgroup.live = 0;
  }
  group.live = group.count - me->simdgroup->index;
  me->simdgroup->live &= ~(me->bit - 1);
  me->simdgroup->resume = me->index;
  markStarted(worker, me, stack);
}

// The simdgroup has converged at a threadgroup barrier: returns the lane to run next.
MNK_HOST_RUNTIME Lane* arriveAtBarrier(Worker* worker, Lane* me) {
  Threadgroup& group = worker->group;
  Simdgroup& simdgroup = *me->simdgroup;
  simdgroup.arrived = 0;
  if (group.waiting == 0) {
    group.barrierSite = simdgroup.site;
  } else if (!(group.barrierSite == simdgroup.site)) {
    stopDispatch(worker, FaultKind::stopped, "simdgroups wait at different threadgroup barriers: %s:%u and %s:%u",
                 group.barrierSite.file, group.barrierSite.line, simdgroup.site.file, simdgroup.site.line);
  }
  if (group.laneExited) {
    stopDispatch(worker, FaultKind::stopped, "%s: %s:%u", kBarrierAfterReturn, simdgroup.site.file,
                 simdgroup.site.line);
  }
  simdgroup.atBarrier = true;
  simdgroup.resume = me->index;
  if (++group.waiting == group.live) {
    for (uint32_t i = 0; i < group.count; ++i) group.simdgroups[i].atBarrier = false;
    group.waiting = 0;
    check::threadgroupFence(group.barrierMemory);
    group.barrierMemory = ~0u;
  }
  return isOrdered(worker) || simdgroup.atBarrier ? pickSimdgroup(worker, simdgroup.index) : me;
}

// A lane has returned: returns the lane to run next, or leaves if none is left.
MNK_HOST_RUNTIME Lane* afterReturn(Worker* worker, Lane* me) {
  Threadgroup& group = worker->group;
  Simdgroup& simdgroup = *me->simdgroup;
  simdgroup.live &= ~me->bit;
  simdgroup.ready &= ~me->bit;
  group.laneExited = true;
  if (simdgroup.live == 0) {
    if (--group.live == 0) {
      if (!sanitizer::kOneStackPerLane) giveBackStack(worker, me->stack);
      leaveToMain(worker);
    }
    if (group.waiting) {
      stopDispatch(worker, FaultKind::stopped, "%s: %s:%u", kBarrierAfterReturn, group.barrierSite.file,
                   group.barrierSite.line);
    }
    return pickSimdgroup(worker, simdgroup.index);
  }
  if (simdgroup.arrived == simdgroup.live) {  // this return completes a collective
    if (!simdgroup.complete) {
      stopDispatch(worker, FaultKind::stopped, "%s: %s:%u", kBarrierAfterReturn, simdgroup.site.file,
                   simdgroup.site.line);
    }
    simdgroup.complete(simdgroup.box[simdgroup.parity], simdgroup.result[simdgroup.parity], simdgroup.live);
    simdgroup.tookPart[simdgroup.parity] = simdgroup.live;
    simdgroup.arrived = 0;
    simdgroup.parity ^= 1;
  }
  return pickLane(worker, &simdgroup, simdgroup.live & ~simdgroup.arrived, me->index);
}

MNK_HOST_RUNTIME void runLanes(Worker* worker, uint32_t first, uint32_t last) {
  sanitizer::observe(&worker->group.main);
  worker->group.launch->kernel->runLanes(&worker->group, first, last);
  sanitizer::publish(&worker->group.live);
}

MNK_HOST_RUNTIME void fiberMain() {
  Worker* worker = running.group->worker;
  const sanitizer::StackRange previous = sanitizer::cameFrom(nullptr);
  if (!worker->mainStack.low) worker->mainStack = previous;
  Lane* me = running.lane;
  if (worker->group.sweeping) {
    const uint32_t* size = worker->group.size;
    runLanes(worker, 0, size[0] * size[1] * size[2]);
    if (worker->group.sweeping) {
      giveBackStack(worker, me->stack);
      leaveToMain(worker);
    }
    me = running.lane;  // the one that ended the sweep
  } else {
    runLanes(worker, me->linear, me->linear + 1);
  }
  for (;;) {
    Lane* next = afterReturn(worker, me);
    if (!sanitizer::kOneStackPerLane) {
      if (isStarted(next)) {
        giveBackStack(worker, me->stack);
      } else {
        markStarted(worker, next, me->stack);
        running.lane = me = next;
        runLanes(worker, me->linear, me->linear + 1);
        continue;
      }
    }
    leaveTo(worker, next);
  }
}

}  // namespace

MNK_HOST_RUNTIME void leaveToMain(Worker* worker) {
  sanitizer::leavingFor(nullptr, worker->mainStack);
  sanitizer::becomeThread(worker->mainThread);
  FiberState unused;
  MNK_HOST_SWITCH(&unused, &worker->group.main);
  __builtin_unreachable();
}

MNK_HOST_RUNTIME bool enterThreadgroup(Worker* worker, Lane* first) {
  if (!startFiber(worker, first)) return false;
  running.lane = first;
  sanitizer::publish(&worker->group.main);
  worker->mainThread = sanitizer::currentThread();
  worker->mainStack = {};
  sanitizer::leavingFor(&worker->mainFakeStack, stackOf(first));
  sanitizer::becomeThread(first->sanitizerThread);
  MNK_HOST_SWITCH(&worker->group.main, &first->fiber);
  sanitizer::cameFrom(worker->mainFakeStack);
  sanitizer::observe(&worker->group.live);
  return true;
}

MNK_HOST_RUNTIME void stopDispatch(Worker* worker, FaultKind kind, const char* format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(worker->fault->text, sizeof worker->fault->text, format, list);
  va_end(list);
  worker->fault->kind = kind;
  leaveToMain(worker);
}

MNK_HOST_RUNTIME void blockLane(Lane* me) {
  Simdgroup* group = me->simdgroup;
  Worker* worker = group->threadgroup->worker;
  goTo(worker, me, pickLane(worker, group, group->live & ~group->arrived, me->index));
}

MNK_HOST_RUNTIME void arriveUnexpectedly(Lane* me, Site site) {
  Worker* worker = me->simdgroup->threadgroup->worker;
  if (worker->group.sweeping) return endSweep(worker, me);
  const Site& first = me->simdgroup->site;
  stopDispatch(worker, FaultKind::stopped, "lanes of a simdgroup wait at different places: %s:%u:%u and %s:%u:%u",
               first.file, first.line, first.column, site.file, site.line, site.column);
}

MNK_HOST_RUNTIME void threadgroupBarrier(Site site, uint32_t memory) {
  Lane* me = running.lane;
  Simdgroup* group = me->simdgroup;
  Worker* worker = group->threadgroup->worker;
  if (memory != 0) sanitizer::publish(group->threadgroup);
  group->threadgroup->barrierMemory &= memory;
  if (group->arrived != 0 && !(group->site == site)) arriveUnexpectedly(me, site);
  if (group->arrived == 0) {
    group->site = site;
    group->complete = nullptr;
  }
  group->arrived |= me->bit;
  if (group->arrived != group->live) {
    blockLane(me);
  } else {
    Lane* next = arriveAtBarrier(worker, me);
    if (next != me) goTo(worker, me, next);
  }
  if (memory != 0) sanitizer::observe(group->threadgroup);
}

}  // namespace mnk::host
