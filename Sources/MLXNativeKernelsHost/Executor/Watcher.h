// The events that a module compiled for checking reports to its device while lanes run: every load and store before it
// happens, every barrier with the memory that it orders, and errors that the compiler's checks detect. Plain functions
// and data, as in Module.h, because both sides may be compiled separately.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace mnk::host {

// An atomic store is an update that reads nothing.
enum class AccessKind : uint32_t { read, write, atomic, atomicLoad, atomicStore };

// Bits for the memory that a barrier orders, as in Metal's mem_flags.
inline constexpr uint32_t kOrdersDevice = 1, kOrdersThreadgroup = 2;

struct Watcher {
  void* state;
  // `lane` is the index in the threadgroup; `place` is the callback's return address. Returns false if the address is
  // outside all memory: the access must not happen, and the dispatch ends.
  bool (*access)(void* state, AccessKind kind, const void* address, size_t bytes, uint32_t lane, const void* place);
  // The arena contains the threadgroup memory.
  void (*beginThreadgroup)(void* state, uint64_t index, void* arena, size_t bytes);
  void (*endThreadgroup)(void* state);
  void (*addThreadgroupArray)(void* state, const void* address, size_t bytes);
  // Every live lane of the simdgroup, or of the threadgroup, has arrived.
  void (*simdgroupFence)(void* state, uint32_t simdgroup, uint32_t memory);
  void (*threadgroupFence)(void* state, uint32_t memory);
  // At a source line or, if `file` is null, at a return address.
  void (*mistake)(void* state, const char* file, uint32_t line, const void* place, uint32_t lane, const char* text);
};

}  // namespace mnk::host
