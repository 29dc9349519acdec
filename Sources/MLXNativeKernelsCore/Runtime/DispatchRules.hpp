// Rules that every dispatch must satisfy before it is recorded, including those of the caller's kernels.
#pragma once
#include <span>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "Support/Errors.hpp"

namespace mnk {

struct DispatchCheck {
  const Dispatch& dispatch;
  const Device& device;
  const Pipeline& pipeline;
};

std::span<const Rule<DispatchCheck>> dispatchRules();

// The threadgroup size if the caller does not set one: within the limit, no longer than the grid on any axis, and
// longest on the first axis, where neighboring threads touch neighboring bytes.
Size3 threadgroupFor(const Size3& grid, uint32_t maxThreads);

// Shrinks a one-axis threadgroup to whole simdgroups within the limit, but at least one.
Size3 shrinkToLimit(uint32_t maxThreads, Size3 threadgroup);
// A grid whose threadgroups have no more threads than the limit, if they may be smaller.
Grid shrinkToLimit(uint32_t maxThreads, Grid grid);

// Threads of a threadgroup; 64 bits because nothing has checked the shape yet.
uint64_t threadCount(const Size3& threadgroup);

}  // namespace mnk
