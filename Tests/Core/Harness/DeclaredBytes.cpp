#include "Harness/DeclaredBytes.hpp"

#include <algorithm>

#include "Harness/Check.hpp"

namespace mnk::test {

const Binding* bindingOf(const Dispatch& dispatch, const Tensor& tensor) {
  const auto found = std::find_if(dispatch.buffers.begin(), dispatch.buffers.end(),
                                  [&](const Binding& binding) { return binding.buffer == tensor.buffer(); });
  return found == dispatch.buffers.end() ? nullptr : &*found;
}

const Binding* sourceBindingOf(const Dispatch& dispatch, uint32_t index, const HeadsView& view) {
  const auto found = std::find_if(dispatch.buffers.begin(), dispatch.buffers.end(),
                                  [&](const Binding& binding) { return binding.index == index; });
  if (found == dispatch.buffers.end() || found->buffer != view.tensor.buffer()) return nullptr;
  const uint64_t lead = view.strides ? view.strides->offset * byteSize(view.tensor.dtype()) : 0;
  EXPECT_EQ(found->offset, view.tensor.byteOffset() + lead);
  if (!view.strides) EXPECT_EQ(found->length, view.tensor.byteCount());
  EXPECT(found->length <= view.tensor.byteCount() - lead);
  return &*found;
}

std::vector<bool> boundPart(const Binding& binding, const HeadsView& view, const std::vector<bool>& bytes) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(binding.offset - view.tensor.byteOffset());
  const auto end = begin + static_cast<ptrdiff_t>(binding.length);
  EXPECT_EQ(std::count(bytes.begin(), begin, true) + std::count(end, bytes.end(), true), 0);
  return {begin, end};
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
