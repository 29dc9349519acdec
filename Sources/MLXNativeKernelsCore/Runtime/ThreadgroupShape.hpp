// How many threads a threadgroup gets when the caller leaves it open: never more than the limit, never longer than
// the grid on an axis, and longest on the first axis, where neighboring threads touch neighboring bytes.
#pragma once
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk {

Size3 threadgroupFor(const Size3& grid, uint32_t maxThreads);

// A threadgroup with one axis, with no more whole simdgroups than the limit allows, but one at least.
Size3 shrunkTo(uint32_t maxThreads, Size3 threadgroup);
// A grid whose threadgroups have no more threads than the limit, if they may be smaller.
Grid shrunkTo(uint32_t maxThreads, Grid grid);

// Threads of a threadgroup; 64 bits because nothing has checked the shape yet.
inline uint64_t threadCount(const Size3& threadgroup) {
  const uint64_t plane = uint64_t{threadgroup[0]} * threadgroup[1];
  uint64_t count;
  return __builtin_mul_overflow(plane, threadgroup[2], &count) ? UINT64_MAX : count;
}

}  // namespace mnk
