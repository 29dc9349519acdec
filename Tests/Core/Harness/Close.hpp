// Compares cache contents element by element and reports the first bad one as (sequence, head, slot, element).
#pragma once
#include <cstddef>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Generated/CacheViews.hpp"

namespace mnk::test {

// The expected contents of a cache's plane.
struct ExpectedPlane {
  std::vector<std::byte> bytes;
  std::vector<bool> isWritten;  // for each byte
  // Any NaN matches a converted NaN: formats and processors disagree about payloads. Unwritten bytes and bytes copied
  // without conversion must match exactly.
  bool isConverted = false;
};

// `plane` is the view's keys or values.
void expectPlane(std::string_view name, const KVCacheView& view, const Tensor& plane, std::span<const std::byte> got,
                 const ExpectedPlane& expected, std::source_location where = std::source_location::current());

}  // namespace mnk::test
