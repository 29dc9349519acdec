// A module is kernels with the executor that runs them, used by the device through this table alone.
// The program is one module; a library compiled at run time is another, loaded from a shared object that carries its
// own copy of the executor, so that the program needs to export nothing. Plain data only: both sides may have been
// compiled apart.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace mnk::host {

inline constexpr uint32_t kModuleVersion = 3;
inline constexpr uint32_t kBufferIndices = 31;
inline constexpr uint32_t kThreadgroupIndices = 8;
inline constexpr uint32_t kConstantIndices = 128;
inline constexpr uint32_t kMaxLanes = 1024;                  // per threadgroup
inline constexpr uint32_t kMaxThreadgroupBytes = 32 * 1024;  // what every Apple GPU offers

struct Threadgroup;
struct Watcher;
struct Worker;

// A parameter that is a pointer or a reference: a buffer, or threadgroup memory.
struct PointerParameter {
  uint32_t bytes;  // of what it points to
  uint32_t alignment;
  bool isReadOnly;
  bool isReference;
};

struct RegisteredKernel {
  const char* library;  // label
  const char* name;
  const char* file;  // of the text
  uint32_t level;    // the instruction set it was compiled for: a Level, larger is better
  uint32_t pointerCount;
  const PointerParameter* pointers;  // in the order of the parameters
  // Runs lanes first ..< last one after another, or fewer when they turn out to need each other.
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
  bool recording;  // lanes only tell which arguments they take
};

struct Launch {
  const RegisteredKernel* kernel;
  const Arguments* arguments;
  uint32_t threads[3];      // of the grid
  uint32_t groups[3];       // threadgroups of the grid
  uint32_t threadgroup[3];  // threads of a threadgroup that is not at an edge
  uint32_t threadgroupBytes[kThreadgroupIndices];
  uint64_t orderSeed;
  bool poison;
  const Watcher* watcher;  // null, or who is told what a module compiled for checking does
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
  // A worker holds stacks and threadgroup memory. It runs one threadgroup at a time, on any thread. Null: no memory.
  Worker* (*makeWorker)();
  void (*destroyWorker)(Worker* worker);
  void (*run)(Worker* worker, const Launch* launch, uint64_t threadgroup, Fault* fault);
  // The arguments that a kernel takes with these constants.
  void (*reflect)(Worker* worker, const RegisteredKernel* kernel, const Arguments* arguments, FoundArguments* found,
                  Fault* fault);
};

// The program's own module.
const Module& programModule();

// What a shared object exports, as `const Module* mnkHostModule()`.
inline constexpr char kModuleSymbol[] = "mnkHostModule";
using ModuleSymbol = const Module* (*)();

}  // namespace mnk::host
