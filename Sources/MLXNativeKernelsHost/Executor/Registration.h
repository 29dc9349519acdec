// Kernels and function constants register in their module's lists before main, or when a shared object is loaded.
#pragma once
#include "Executor/Worker.h"

namespace mnk::host {

// Defined by the executor; empty before any constructor runs.
extern const RegisteredKernel* registeredKernels;
extern const RegisteredConstant* registeredConstants;

template <typename T>
inline constexpr bool kIsPointer = false;
template <typename T>
inline constexpr bool kIsPointer<T*> = true;

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
struct AddTo {
  static constexpr void list(PointerParameter*, uint32_t&) {}
};
template <typename T>
struct AddTo<T*> {
  static constexpr void list(PointerParameter* list, uint32_t& count) { list[count++] = kPointee<T>; }
};
template <typename T>
struct AddTo<T&> {
  static constexpr void list(PointerParameter* list, uint32_t& count) {
    list[count] = kPointee<T>;
    list[count++].isReference = true;
  }
};

template <typename Function>
struct PointerParameters;
template <typename... Parameters>
struct PointerParameters<void (*)(Parameters...)> {
  PointerParameter list[sizeof...(Parameters) + 1]{};
  uint32_t count = 0;
  constexpr PointerParameters() { (AddTo<Parameters>::list(list, count), ...); }
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
struct ValueTypeOf;
template <>
struct ValueTypeOf<bool> {
  static constexpr ValueType value = ValueType::boolean;
};
template <>
struct ValueTypeOf<int> {
  static constexpr ValueType value = ValueType::i32;
};
template <>
struct ValueTypeOf<unsigned> {
  static constexpr ValueType value = ValueType::u32;
};
template <>
struct ValueTypeOf<float> {
  static constexpr ValueType value = ValueType::f32;
};

struct ConstantRegistration : RegisteredConstant {
  ConstantRegistration(const char* library, const char* name, const char* file, uint32_t line, uint32_t index,
                       ValueType type)
      : RegisteredConstant{library, name, file, line, index, type, registeredConstants} {
    registeredConstants = this;
  }
};

}  // namespace mnk::host
