// Provides a kernel's parameters, function constants and threadgroup arrays.
//
// An attribute such as [[buffer(0)]] follows a parameter's name, where a default argument would also be. `buffer(n)`
// therefore expands to   ]] = …::bufferArgument<n>[…::at[…::Always{}   and the attribute's closing brackets complete
// the expression. Every kernel parameter gets a default argument that queries the running lane, and the executor calls
// kernels without arguments. In [[buffer(2), function_constant(c)]] the comma joins Always and Optional.
#pragma once
#include "Executor/Registration.h"
#include "Simdgroups.h"

namespace mnk::host {

struct Always {};
struct Optional {
  bool present;
  MNK_HOST_INLINE constexpr explicit Optional(bool present) : present(present) {}
};
MNK_HOST_INLINE constexpr Optional operator,(Always, Optional optional) {
  return optional;
}

struct At {
  template <class T>
  MNK_HOST_INLINE constexpr T operator[](T presence) const {
    return presence;
  }
};
inline constexpr At at;

extern const char absentObject[4096];  // zeros, bound to an absent reference

// Converts to the pointer or reference that the parameter needs.
struct Address {
  void* address;
  template <class T>
  MNK_HOST_INLINE operator T*() const {
    return static_cast<T*>(address);
  }
  template <class T>
  requires(!kIsPointer<T>) MNK_HOST_INLINE operator T&() const {
    static_assert(sizeof(T) <= sizeof absentObject, "too large for a reference");
    return *static_cast<T*>(address ? address : const_cast<char*>(absentObject));
  }
};

template <ArgumentKind Kind, uint32_t N>
struct Argument {
  static_assert(N < (Kind == ArgumentKind::buffer ? kBufferIndices : kThreadgroupIndices),
                "buffer indices are 0 to 30, threadgroup memory indices 0 to 7");
  MNK_HOST_HOOK Address operator[](Always) const {
    void* address;
    if constexpr (Kind == ArgumentKind::buffer) {
      address = running.arguments->buffers[N];
    } else {
      address = running.group->threadgroupMemory[N];
    }
    if (__builtin_expect(!address, 0)) address = unboundArgument(Kind, N);
    return {address};
  }
  MNK_HOST_HOOK Address operator[](Optional optional) const {
    if (optional.present) return (*this)[Always{}];
    if (__builtin_expect(running.arguments->recording, 0)) recordAbsentArgument();
    return {nullptr};
  }
};
template <uint32_t N>
inline constexpr Argument<ArgumentKind::buffer, N> bufferArgument{};
template <uint32_t N>
inline constexpr Argument<ArgumentKind::threadgroupMemory, N> threadgroupArgument{};

// Converts to any type that Metal allows for a built-in value: only unsigned ones.
struct BuiltinValue {
  uint32_t x, y, z;
  MNK_HOST_INLINE operator metal::uint() const { return x; }
  MNK_HOST_INLINE operator metal::ushort() const { return metal::ushort(x); }
  operator int() const = delete;
  operator short() const = delete;
  operator metal::ulong() const = delete;
  MNK_HOST_INLINE operator metal::uint2() const { return metal::uint2(x, y); }
  MNK_HOST_INLINE operator metal::uint3() const { return metal::uint3(x, y, z); }
  MNK_HOST_INLINE operator metal::ushort2() const { return metal::ushort2(x, y); }
  MNK_HOST_INLINE operator metal::ushort3() const { return metal::ushort3(x, y, z); }
};

#define MNK_HOST_BUILTIN(name, x, y, z)                        \
  struct name##Type {                                          \
    MNK_HOST_HOOK BuiltinValue operator[](Always) const {      \
      [[maybe_unused]] const Running& lane = running;          \
      [[maybe_unused]] const Threadgroup& group = *lane.group; \
      return {x, y, z};                                        \
    }                                                          \
  };                                                           \
  inline constexpr name##Type name;
#define MNK_HOST_BUILTIN1(name, value) MNK_HOST_BUILTIN(name, value, 0, 0)
#define MNK_HOST_BUILTIN3(name, values) MNK_HOST_BUILTIN(name, values[0], values[1], values[2])
MNK_HOST_BUILTIN(threadPositionInGrid, group.origin[0] + lane.position[0], group.origin[1] + lane.position[1],
                 group.origin[2] + lane.position[2])
MNK_HOST_BUILTIN3(threadPositionInThreadgroup, lane.position)
MNK_HOST_BUILTIN1(threadIndexInThreadgroup, lane.linear)
MNK_HOST_BUILTIN1(threadIndexInSimdgroup, lane.linear % 32)
MNK_HOST_BUILTIN1(threadIndexInQuadgroup, lane.linear % 4)
MNK_HOST_BUILTIN1(simdgroupIndexInThreadgroup, lane.linear / 32)
MNK_HOST_BUILTIN1(quadgroupIndexInThreadgroup, lane.linear / 4)
MNK_HOST_BUILTIN1(simdgroupsPerThreadgroup, group.count)
MNK_HOST_BUILTIN1(quadgroupsPerThreadgroup, (group.size[0] * group.size[1] * group.size[2] + 3) / 4)
MNK_HOST_BUILTIN1(threadsPerSimdgroup, 32)
MNK_HOST_BUILTIN3(threadgroupPositionInGrid, group.position)
MNK_HOST_BUILTIN3(threadsPerThreadgroup, group.size)
MNK_HOST_BUILTIN3(dispatchThreadsPerThreadgroup, group.launch->threadgroup)
MNK_HOST_BUILTIN1(dispatchSimdgroupsPerThreadgroup,
                  (group.launch->threadgroup[0] * group.launch->threadgroup[1] * group.launch->threadgroup[2] + 31) /
                      32)
MNK_HOST_BUILTIN3(threadgroupsPerGrid, group.launch->groups)
MNK_HOST_BUILTIN3(threadsPerGrid, group.launch->threads)
#undef MNK_HOST_BUILTIN
#undef MNK_HOST_BUILTIN1
#undef MNK_HOST_BUILTIN3

// Read from the running pipeline, so that pipelines with different values can run concurrently.
template <class T, uint32_t N>
struct PipelineConstant {
  static_assert(N < kConstantIndices, "function constant indices are 0 to 127 here");
  const char* name;
  const char* file;
  uint32_t line;
  MNK_HOST_HOOK operator T() const {
    const Arguments* arguments = running.arguments;
    if (__builtin_expect(!arguments->constantIsSet[N], 0)) unsetConstant(name, N, file, line);
    T value;
    __builtin_memcpy(&value, &arguments->constants[N], sizeof value);
    return value;
  }
};
template <class T, uint32_t N>
MNK_HOST_HOOK bool isConstantSet(const PipelineConstant<T, N>&) {
  return running.arguments->constantIsSet[N];
}

// One array per threadgroup and declaration; the lambda's type names the declaration.
template <class Declaration>
inline constexpr char kDeclarationKey = 0;
template <class T, size_t Count, class Declaration>
MNK_HOST_HOOK auto threadgroupArray(Declaration, Site site = Site::here()) -> T (&)[Count] {
  const Threadgroup& group = *running.group;
  const void* key = &kDeclarationKey<Declaration>;
  for (uint32_t i = 0; i < group.arrayCount; ++i) {
    if (group.arrays[i].declaration == key) return *static_cast<T(*)[Count]>(group.arrays[i].address);
  }
  return *static_cast<T(*)[Count]>(allocateThreadgroupArray(key, sizeof(T) * Count, site));
}

}  // namespace mnk::host
