#include "Support/DeclaredBytes.hpp"

#include <algorithm>

#include "Support/Check.hpp"

namespace mnk::test {

const Binding* bindingOf(const Dispatch& dispatch, const Tensor& tensor) {
  const auto found = std::find_if(dispatch.buffers.begin(), dispatch.buffers.end(),
                                  [&](const Binding& binding) { return binding.buffer == tensor.buffer(); });
  return found == dispatch.buffers.end() ? nullptr : &*found;
}

void expectCovers(std::string_view name, const std::vector<Region>& regions, const std::vector<bool>& bytes) {
  std::vector<uint32_t> times(bytes.size());
  for (const Region& region : regions) {
    for (uint64_t row = 0; row < region.rows; ++row) {
      for (uint64_t byte = 0; byte < region.rowBytes; ++byte) {
        const uint64_t at = region.offset + row * region.rowStride + byte;
        if (at >= times.size()) return fail(__FILE__, __LINE__, fmt::format("{}: byte {} is outside", name, at));
        ++times[at];
      }
    }
  }
  for (uint64_t at = 0; at < times.size(); ++at) {
    if (times[at] == (bytes[at] ? 1u : 0u)) continue;
    return fail(__FILE__, __LINE__,
                fmt::format("{}: byte {} is declared {} times, expected {}", name, at, times[at], bytes[at] ? 1 : 0));
  }
}

}  // namespace mnk::test
