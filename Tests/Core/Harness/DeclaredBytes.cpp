#include "Harness/DeclaredBytes.hpp"

#include <algorithm>

#include "Harness/Check.hpp"

namespace mnk::test {

const Binding* bindingOf(const Dispatch& dispatch, const Tensor& tensor) {
  const auto found = std::find_if(dispatch.buffers.begin(), dispatch.buffers.end(),
                                  [&](const Binding& binding) { return binding.buffer == tensor.buffer(); });
  return found == dispatch.buffers.end() ? nullptr : &*found;
}

const Binding& bindingAt(const Dispatch& dispatch, uint32_t index) {
  for (const Binding& binding : dispatch.buffers) {
    if (binding.index == index) return binding;
  }
  fail(__FILE__, __LINE__, fmt::format("nothing is bound at {}", index));
  throw Stop{};
}

std::vector<bool> boundPart(const Binding& binding, const HeadsView& view, const std::vector<bool>& bytes) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(binding.offset - view.tensor.byteOffset());
  const auto end = begin + static_cast<ptrdiff_t>(binding.length);
  EXPECT_EQ(std::count(bytes.begin(), begin, true) + std::count(end, bytes.end(), true), 0);
  return {begin, end};
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

void TouchedBytes::add(Bytes& bytes, const Buffer& buffer, uint64_t begin, uint64_t count) {
  if (count == 0) return;
  std::vector<bool>& ofBuffer = bytes[&buffer];
  ofBuffer.resize(buffer.length());
  std::fill_n(ofBuffer.begin() + static_cast<ptrdiff_t>(begin), count, true);
}

void TouchedBytes::expectSame(std::string_view what, const Plan& plan, std::vector<Region> Binding::*regions,
                              const Bytes& expected) {
  Bytes declared;
  for (const Dispatch& dispatch : plan.dispatches) {
    for (const Binding& binding : dispatch.buffers) {
      if (!binding.buffer) continue;
      Bytes ofBinding;
      uint64_t count = 0;
      for (const Region& region : binding.*regions) {
        EXPECT(region.byteCount() == 0 || region.end() <= binding.length);
        count += region.byteCount();
        for (uint64_t row = 0; row < region.rows; ++row) {
          const uint64_t begin = binding.offset + region.offset + row * region.rowStride;
          for (Bytes* bytes : {&declared, &ofBinding}) add(*bytes, *binding.buffer, begin, region.rowBytes);
        }
      }
      const auto& once = ofBinding[binding.buffer.get()];
      EXPECT_EQ(static_cast<uint64_t>(std::count(once.begin(), once.end(), true)), count);
    }
  }
  if (declared == expected) return;
  std::string differences;
  for (const auto& [buffer, bytes] : expected) {
    const auto& got = declared[buffer];
    const auto differs = std::mismatch(bytes.begin(), bytes.end(), got.begin(), got.end()).first - bytes.begin();
    differences += fmt::format(" {} of {}", differs, bytes.size());
  }
  fail(__FILE__, __LINE__, fmt::format("other bytes are {}; the first of each buffer:{}", what, differences));
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
