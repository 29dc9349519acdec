// Whether operands of an op share memory, with the names that an error needs.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"

namespace mnk {

struct NamedRange {
  std::string_view name;
  MemoryRange range;
};
struct Overlap {
  NamedRange first;
  NamedRange second;

  std::string text() const;  // "keys overlapping the key cache"
};

// The first source that shares bytes with a target, or the first two targets that share bytes.
std::optional<Overlap> firstOverlap(std::span<const NamedRange> sources, std::span<const NamedRange> targets);
// Adds the indices of rows that lie in tensors.
void addRows(std::vector<NamedRange>& sources, const std::optional<KVCacheWrite::Rows>& rows);

}  // namespace mnk
