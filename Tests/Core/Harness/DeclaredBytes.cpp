#include "Harness/DeclaredBytes.hpp"

#include <algorithm>

#include "Harness/Check.hpp"

namespace mnk::test {

const Binding* bindingOf(const Dispatch& dispatch, const Tensor& tensor) {
  const auto found = std::find_if(dispatch.buffers.begin(), dispatch.buffers.end(),
                                  [&](const Binding& binding) { return binding.buffer == tensor.buffer(); });
  return found == dispatch.buffers.end() ? nullptr : &*found;
}

std::vector<bool> boundPart(const Binding& binding, const HeadsView& view, const std::vector<bool>& bytes) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(binding.offset - view.tensor.byteOffset());
  const auto end = begin + static_cast<ptrdiff_t>(binding.length);
  EXPECT_EQ(std::count(bytes.begin(), begin, true) + std::count(end, bytes.end(), true), 0);
  return {begin, end};
}

void expectSourceRead(std::string_view name, const Dispatch& dispatch, uint32_t index, const HeadsView& view,
                      const std::vector<bool>& bytes) {
  const Binding& binding = bindingAt(dispatch, index);
  if (binding.buffer != view.tensor.buffer()) return fail(__FILE__, __LINE__, fmt::format("{}: not bound", name));
  const uint64_t lead = view.strides ? view.strides->offset * byteSize(view.tensor.dtype()) : 0;
  EXPECT_EQ(binding.offset, view.tensor.byteOffset() + lead);
  if (!view.strides) EXPECT_EQ(binding.length, view.tensor.byteCount());
  EXPECT(binding.length <= view.tensor.byteCount() - lead);
  EXPECT(binding.writes.empty());
  expectCovers(fmt::format("{} read", name), binding.reads, boundPart(binding, view, bytes));
}

void expectDeclared(std::string_view name, const Dispatch& dispatch, const Tensor& tensor,
                    const std::vector<bool>& read, const std::vector<bool>& written) {
  const Binding* binding = bindingOf(dispatch, tensor);
  if (!binding) return fail(__FILE__, __LINE__, fmt::format("{}: not bound", name));
  EXPECT_EQ(binding->offset, tensor.byteOffset());
  EXPECT_EQ(binding->length, tensor.byteCount());
  expectCovers(fmt::format("{} read", name), binding->reads, read);
  expectCovers(fmt::format("{} written", name), binding->writes, written);
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

const Binding& bindingAt(const Dispatch& dispatch, uint32_t index) {
  for (const Binding& binding : dispatch.buffers) {
    if (binding.index == index) return binding;
  }
  fail(__FILE__, __LINE__, fmt::format("nothing is bound at {}", index));
  throw Stop{};
}

std::vector<bool> marked(const Tensor& tensor, uint64_t vectorBytes, const std::vector<uint64_t>& vectors) {
  std::vector<bool> bytes(tensor.byteCount());
  for (uint64_t vector : vectors) {
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(vector * vectorBytes), vectorBytes, true);
  }
  return bytes;
}

std::string dispatchLine(const Dispatch& dispatch, size_t longestInline) {
  const Grid& grid = dispatch.grid;
  std::string line = fmt::format("{} {}x{}x{} {}", dispatch.kernel.text(), grid.extent[0], grid.extent[1],
                                 grid.extent[2], grid.unit == Grid::Unit::threads ? "threads" : "groups");
  const auto add = [&](const char* verb, const std::vector<Region>& regions) {
    for (const Region& r : regions) {
      line += fmt::format(" {} {}+{}", verb, r.offset, r.rowBytes);
      if (r.rows != 1) line += fmt::format("*{}@{}", r.rows, r.rowStride);
    }
  };
  if (grid.threadgroup[0] != 0) line += fmt::format(" of {}", grid.threadgroup[0]);
  for (const Binding& binding : dispatch.buffers) {
    const char* of = binding.isZeroed ? "zeroed " : binding.buffer ? "" : "scratch ";
    line += fmt::format(", {}{} {}+{}", of, binding.index, binding.offset, binding.length);
    add("r", binding.reads);
    add("w", binding.writes);
  }
  for (const InlineBytes& inlined : dispatch.inlines) {
    line += fmt::format(", inline {}:{}", inlined.index, inlined.bytes.size());
    if (inlined.bytes.size() > longestInline) continue;
    line += "=";
    for (const std::byte byte : inlined.bytes) line += fmt::format("{:02x}", static_cast<int>(byte));
  }
  return line + fmt::format(", {} read, {} written", dispatch.countedBytesRead(), dispatch.countedBytesWritten());
}

std::string planLine(std::string_view name, const Plan& plan) {
  std::string line = fmt::format("{}: {}", name, plan.op);
  for (const Dispatch& dispatch : plan.dispatches) {
    line += "; " + dispatchLine(dispatch, 24);
    if (dispatch.kind != plan.op) line += fmt::format(", of {}", dispatch.kind);
    if (!dispatch.threadgroupMemory.empty()) line += ", threadgroup memory";
    if (dispatch.kernel.library) line += ", of a library";
  }
  if (plan.scratchBytes != 0) line += fmt::format("; scratch {}", plan.scratchBytes);
  if (plan.zeroedBytes != 0) line += fmt::format("; zeroed {}", plan.zeroedBytes);
  return line;
}

}  // namespace mnk::test
