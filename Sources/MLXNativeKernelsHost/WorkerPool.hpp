// Threads that run threadgroups, shared by all Host devices. They are never joined, because work may still be queued
// when the program leaves main.
#pragma once
#include <cstdint>
#include <functional>

namespace mnk::host {

// Calls body(begin, end) for parts that cover 0 ..< count, on at most `workers` threads including the caller's, and
// returns when all are done. Thread-safe.
void runInParallel(uint64_t count, uint32_t workers, const std::function<void(uint64_t begin, uint64_t end)>& body);

// The number of workers that 0 selects.
uint32_t coreCount();

}  // namespace mnk::host
