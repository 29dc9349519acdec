#include "Ops/Common/Overlap.hpp"

#include "Support/Errors.hpp"

namespace mnk {

std::string Overlap::text() const {
  return fmt::format("{} overlapping {}", first.name, second.name);
}

std::optional<Overlap> firstOverlap(std::span<const NamedRange> sources, std::span<const NamedRange> targets) {
  for (const NamedRange& target : targets) {
    for (const NamedRange& source : sources) {
      if (source.range.overlaps(target.range)) return {{source, target}};
    }
  }
  for (size_t second = 1; second < targets.size(); ++second) {
    for (size_t first = 0; first < second; ++first) {
      if (targets[first].range.overlaps(targets[second].range)) return {{targets[first], targets[second]}};
    }
  }
  return std::nullopt;
}

void addRows(std::vector<NamedRange>& sources, const std::optional<KVCacheWrite::Rows>& rows) {
  if (!rows) return;
  if (const auto* tensor = std::get_if<Tensor>(&rows->sequences)) sources.push_back({"sequences", tensor->range()});
  if (const auto* tensor = std::get_if<Tensor>(&rows->positions)) sources.push_back({"positions", tensor->range()});
}

}  // namespace mnk
