// Element types of tensors, with their sizes and the names used in kernels and messages.
#pragma once
#include <cstdint>
#include <string_view>

namespace mnk {

enum class DType : uint32_t { f32, f16, bf16, u8, u16, u32, i32 };

constexpr uint64_t byteSize(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::u32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::u8:
      return "u8";
    case DType::u16:
      return "u16";
    case DType::u32:
      return "u32";
    case DType::i32:
      return "i32";
  }
  return "unknown dtype";
}

constexpr bool isFloat(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace mnk
