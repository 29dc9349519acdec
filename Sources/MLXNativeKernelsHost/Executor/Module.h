// A module is a set of kernels with the executor that runs them. The device uses it only through this table. The
// program is one module; a library compiled at run time is another, a shared object with its own copy of the executor,
// so the program need not export anything. Plain data only: both sides may be compiled separately.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace mnk::host {

// An atomic store is an update that reads nothing.
enum class AccessKind : uint32_t { read, write, atomic, atomicLoad, atomicStore };

// Bits for the memory that a barrier orders, as in Metal's mem_flags.
inline constexpr uint32_t kOrdersDevice = 1, kOrdersThreadgroup = 2;

// The events that a module compiled for checking reports to its device while lanes run: every load and store before it
// happens, every barrier with the memory that it orders, and errors that the compiler's checks detect.
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

inline constexpr uint32_t kModuleVersion = 3;
inline constexpr uint32_t kBufferIndices = 31;
inline constexpr uint32_t kThreadgroupIndices = 8;
inline constexpr uint32_t kConstantIndices = 128;
inline constexpr uint32_t kMaxLanes = 1024;                  // per threadgroup
inline constexpr uint32_t kMaxThreadgroupBytes = 32 * 1024;  // available on every Apple GPU

struct Threadgroup;
struct Watcher;
struct Worker;

// A pointer or reference parameter: a buffer or threadgroup memory.
struct PointerParameter {
  uint32_t bytes;  // of the pointee
  uint32_t alignment;
  bool isReadOnly;
  bool isReference;
};

struct RegisteredKernel {
  const char* library;  // label
  const char* name;
  const char* file;  // of the source
  uint32_t level;    // the instruction set that it was compiled for: a Level, larger is better
  uint32_t pointerCount;
  const PointerParameter* pointers;  // in the order of the parameters
  // Runs lanes first ..< last in sequence, or fewer if they need to synchronize.
  void (*runLanes)(Threadgroup* group, uint32_t first, uint32_t last);
  const RegisteredKernel* next;
};

enum class ValueType : uint32_t { boolean, i32, u32, f32 };

struct RegisteredConstant {
  const char* library;
  const char* name;
  const char* file;
  uint32_t line;
  uint32_t index;
  ValueType type;
  const RegisteredConstant* next;
};

struct Arguments {
  void* buffers[kBufferIndices];
  uint32_t constants[kConstantIndices];  // bits
  bool constantIsSet[kConstantIndices];
  bool recording;  // lanes only record their arguments
};

struct Launch {
  const RegisteredKernel* kernel;
  const Arguments* arguments;
  uint32_t threads[3];      // of the grid
  uint32_t groups[3];       // threadgroups of the grid
  uint32_t threadgroup[3];  // threads of a threadgroup in the interior
  uint32_t threadgroupBytes[kThreadgroupIndices];
  uint64_t orderSeed;
  bool poison;
  const Watcher* watcher;  // null, or receives the events of a module compiled for checking
};

enum class FaultKind : uint32_t { none, stopped, outOfMemory };

struct Fault {
  FaultKind kind;
  char text[500];
};

enum class ArgumentKind : uint32_t { buffer, threadgroupMemory };

struct FoundArguments {
  uint32_t count;
  struct {
    ArgumentKind kind;
    uint32_t index;
    PointerParameter parameter;
  } list[kBufferIndices + kThreadgroupIndices];
};

struct Module {
  uint32_t version;
  uint32_t bytes;  // sizeof(Module)
  bool checked;    // compiled for a watcher
  const RegisteredKernel* const* kernels;
  const RegisteredConstant* const* constants;
  // A worker owns stacks and threadgroup memory. It runs one threadgroup at a time, on any thread. Null: no memory.
  Worker* (*makeWorker)();
  void (*destroyWorker)(Worker* worker);
  void (*run)(Worker* worker, const Launch* launch, uint64_t threadgroup, Fault* fault);
  // Finds the arguments that a kernel uses with these constants.
  void (*reflect)(Worker* worker, const RegisteredKernel* kernel, const Arguments* arguments, FoundArguments* found,
                  Fault* fault);
};

// The program's own module.
const Module& programModule();

// Exported by a shared object as `const Module* mnkHostModule()`.
inline constexpr char kModuleSymbol[] = "mnkHostModule";
using ModuleSymbol = const Module* (*)();

// Kernels and function constants register in their module's lists before main, or when a shared object is loaded. The
// lists are defined by the executor; empty before any constructor runs.
extern const RegisteredKernel* registeredKernels;
extern const RegisteredConstant* registeredConstants;

template <typename T>
inline constexpr PointerParameter kPointee{sizeof(T), alignof(T), false, false};
template <typename T>
inline constexpr PointerParameter kPointee<const T>{sizeof(T), alignof(T), true, false};
template <>
inline constexpr PointerParameter kPointee<void>{1, 1, false, false};
template <>
inline constexpr PointerParameter kPointee<const void>{1, 1, true, false};

// Adds a parameter to a list if it is a pointer or a reference.
template <typename Parameter>
constexpr void addTo(PointerParameter* list, uint32_t& count) {
  if constexpr (__is_pointer(Parameter)) list[count++] = kPointee<__remove_pointer(Parameter)>;
  if constexpr (__is_lvalue_reference(Parameter)) {
    list[count] = kPointee<__remove_reference_t(Parameter)>;
    list[count++].isReference = true;
  }
}

template <typename Function>
struct PointerParameters;
template <typename... Parameters>
struct PointerParameters<void (*)(Parameters...)> {
  PointerParameter list[sizeof...(Parameters) + 1]{};
  uint32_t count = 0;
  constexpr PointerParameters() { (addTo<Parameters>(list, count), ...); }
};
template <typename Function>
inline constexpr PointerParameters<Function> kPointerParameters{};

struct KernelRegistration : RegisteredKernel {
  KernelRegistration(const char* library, const char* name, const char* file, uint32_t level, uint32_t pointerCount,
                     const PointerParameter* pointers, void (*runLanes)(Threadgroup*, uint32_t, uint32_t),
                     bool isWanted)
      : RegisteredKernel{library, name, file, level, pointerCount, pointers, runLanes, registeredKernels} {
    if (isWanted) registeredKernels = this;
  }
};

template <typename T>
constexpr ValueType valueTypeOf() {
  if constexpr (__is_same(T, bool)) return ValueType::boolean;
  if constexpr (__is_same(T, int)) return ValueType::i32;
  if constexpr (__is_same(T, float)) return ValueType::f32;
  static_assert(__is_same(T, bool) || __is_same(T, int) || __is_same(T, unsigned) || __is_same(T, float));
  return ValueType::u32;
}

struct ConstantRegistration : RegisteredConstant {
  ConstantRegistration(const char* library, const char* name, const char* file, uint32_t line, uint32_t index,
                       ValueType type)
      : RegisteredConstant{library, name, file, line, index, type, registeredConstants} {
    registeredConstants = this;
  }
};

}  // namespace mnk::host
