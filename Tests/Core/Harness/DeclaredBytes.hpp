// The bytes that a dispatch declares to read and write.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

// The binding of a tensor's buffer, or null.
const Binding* bindingOf(const Dispatch& dispatch, const Tensor& tensor);

// The binding at an index; otherwise the test fails and ends.
const Binding& bindingAt(const Dispatch& dispatch, uint32_t index);

// Vectors of a tensor, as many bytes each.
std::vector<bool> marked(const Tensor& tensor, uint64_t vectorBytes, const std::vector<uint64_t>& vectors);

// A dispatch on a line: kernel and grid, what is bound and declared, inline bytes (in hex up to
// `longestInline` of them) and counted bytes.
std::string dispatchLine(const Dispatch& dispatch, size_t longestInline);
// A plan on a line, for golden texts: its dispatches, and scratch memory.
std::string planLine(std::string_view name, const Plan& plan);

// Returns the flags of the bound part out of the flags for a view's tensor. Fails if a flag outside that part is set.
std::vector<bool> boundPart(const Binding& binding, const HeadsView& view, const std::vector<bool>& bytes);
// All of a tensor is bound, and exactly these bytes are read, and these written.
void expectDeclared(std::string_view name, const Dispatch& dispatch, const Tensor& tensor,
                    const std::vector<bool>& read, const std::vector<bool>& written);

// Fails unless the regions cover exactly these bytes, each once.
void expectCovers(std::string_view name, const std::vector<Region>& regions, const std::vector<bool>& bytes);

// The bytes of its operands that an op touches. A plan must declare exactly these, no binding one of them twice.
class TouchedBytes {
 public:
  // `count` bytes of a tensor from `begin` on.
  void reads(const Tensor& tensor, uint64_t begin, uint64_t count) {
    add(read_, *tensor.buffer(), tensor.byteOffset() + begin, count);
  }
  void writes(const Tensor& tensor, uint64_t begin, uint64_t count) {
    add(written_, *tensor.buffer(), tensor.byteOffset() + begin, count);
  }
  void expectReads(const Plan& plan) const { expectSame("read", plan, &Binding::reads, read_); }
  void expectWrites(const Plan& plan) const { expectSame("written", plan, &Binding::writes, written_); }

 private:
  using Bytes = std::map<const Buffer*, std::vector<bool>>;
  static void add(Bytes& bytes, const Buffer& buffer, uint64_t begin, uint64_t count);
  static void expectSame(std::string_view what, const Plan& plan, std::vector<Region> Binding::*regions,
                         const Bytes& expected);

  Bytes read_, written_;
};

}  // namespace mnk::test
