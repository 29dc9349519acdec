// Compares cache contents element by element and reports the first bad one as (sequence, head, slot, element).
#pragma once
#include <cstddef>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/KVCacheView.hpp"

namespace mnk::test {

// What a plane of a cache must hold.
struct ExpectedPlane {
  std::vector<std::byte> bytes;
  std::vector<bool> isWritten;  // by byte
  // A converted NaN is any NaN: formats and processors disagree about payloads. What was not written, and what was
  // moved without conversion, is compared bit for bit.
  bool isConverted = false;
};

// `plane` is the view's keys or values.
void expectPlane(std::string_view name, const KVCacheView& view, const Tensor& plane, std::span<const std::byte> got,
                 const ExpectedPlane& expected, std::source_location where = std::source_location::current());

}  // namespace mnk::test
