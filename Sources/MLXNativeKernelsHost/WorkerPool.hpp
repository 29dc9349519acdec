// Threads of the process that run threadgroups, shared by all Host devices. They are never joined, because work may
// still be queued when the program leaves main.
#pragma once
#include <cstdint>
#include <functional>

namespace mnk::host {

// Calls body(begin, end) for parts that cover 0 ..< count, on at most `workers` threads, the caller's among them.
// Returns when all parts are done. Several threads may call it at once.
void runInParallel(uint64_t count, uint32_t workers, const std::function<void(uint64_t begin, uint64_t end)>& body);

// How many workers 0 stands for.
uint32_t coreCount();

}  // namespace mnk::host
