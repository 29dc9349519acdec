#include "MLXNativeKernels/Dispatch.hpp"

#include <algorithm>
#include <bit>

#include "Common/FunctionConstants.h"
#include "MLXNativeKernels/Device.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

std::string valueText(const FunctionConstant& constant) {
  switch (constant.type) {
    case ConstantType::boolean:
      return constant.bits ? "true" : "false";
    case ConstantType::i32:
      return fmt::format("{}", static_cast<int32_t>(constant.bits));
    case ConstantType::u32:
      return fmt::format("{}", constant.bits);
    case ConstantType::f32:
      return fmt::format("{}", std::bit_cast<float>(constant.bits));
  }
  return "unknown";
}

// The name of a function constant of this package's kernels, such as "hasValues"; empty for other indices.
std::string shippedName(uint32_t index) {
  static constexpr std::pair<uint32_t, std::string_view> kNames[] = {
#define ROW(op, name, index) {index, #name},
      MNK_FUNCTION_CONSTANTS(ROW)
#undef ROW
  };
  for (const auto& [known, name] : kNames) {
    if (known == index) return static_cast<char>(name[0] - 'A' + 'a') + std::string(name.substr(1));
  }
  return {};
}

// "hasValues", "keyBits: 4", "cacheType: f16", or "0: true" for a caller's kernel. Empty for a shipped flag that is
// false.
std::string constantText(const FunctionConstant& constant, bool isOfCaller) {
  const std::string called = isOfCaller ? std::string() : shippedName(constant.index);
  if (called.empty()) return fmt::format("{}: {}", constant.index, valueText(constant));
  if (constant.type == ConstantType::boolean) return constant.bits ? called : std::string();
  if (called.ends_with("Type")) return fmt::format("{}: {}", called, name(static_cast<DType>(constant.bits)));
  return fmt::format("{}: {}", called, valueText(constant));
}

uint64_t byteCount(const std::vector<Region>& regions) {
  uint64_t bytes = 0;
  for (const Region& region : regions) bytes += region.byteCount();
  return bytes;
}

}  // namespace

std::string_view name(ConstantType type) {
  switch (type) {
    case ConstantType::boolean:
      return "bool";
    case ConstantType::i32:
      return "int";
    case ConstantType::u32:
      return "uint";
    case ConstantType::f32:
      return "float";
  }
  return "unknown type";
}

std::string KernelKey::text() const {
  std::string values;
  for (const FunctionConstant& constant : constants) {
    const std::string value = constantText(constant, library != nullptr);
    if (!value.empty()) values += (values.empty() ? "" : ", ") + value;
  }
  return values.empty() ? function : fmt::format("{} {{{}}}", function, values);
}

Binding Binding::whole(uint32_t index, const Tensor& tensor, Access access) {
  Binding binding{.index = index,
                  .buffer = tensor.buffer(),
                  .offset = tensor.byteOffset(),
                  .length = tensor.byteCount(),
                  .reads = {},
                  .writes = {}};
  const Region all{.offset = 0, .rowBytes = tensor.byteCount(), .rowStride = tensor.byteCount(), .rows = 1};
  if (access != Access::write) binding.reads.push_back(all);
  if (access != Access::read) binding.writes.push_back(all);
  return binding;
}

uint64_t Dispatch::countedBytesRead() const {
  if (bytesRead) return *bytesRead;
  uint64_t bytes = 0;
  for (const Binding& binding : buffers) bytes += byteCount(binding.reads);
  return bytes;
}

uint64_t Dispatch::countedBytesWritten() const {
  if (bytesWritten) return *bytesWritten;
  uint64_t bytes = 0;
  for (const Binding& binding : buffers) bytes += byteCount(binding.writes);
  return bytes;
}

std::string Dispatch::text() const {
  return fmt::format("{}: {} x {} x {} {}, {} read, {} written", kernel.text(), grid.extent[0], grid.extent[1],
                     grid.extent[2], grid.unit == Grid::Unit::threads ? "threads" : "threadgroups",
                     bytesText(countedBytesRead()), bytesText(countedBytesWritten()));
}

void Plan::append(Plan next) {
  hasFixedPositions = hasFixedPositions || next.hasFixedPositions;
  for (Dispatch& dispatch : next.dispatches) {
    for (Binding& binding : dispatch.buffers) {
      if (!binding.buffer && binding.isZeroed) binding.offset += zeroedBytes;
    }
    dispatches.push_back(std::move(dispatch));
  }
  scratchBytes = std::max(scratchBytes, next.scratchBytes);
  zeroedBytes += next.zeroedBytes;
  if (warning.empty()) warning = std::move(next.warning);
}

std::string Plan::text() const {
  std::string text = fmt::format("{}: {}", op, countText(dispatches.size(), "dispatch"));
  const uint64_t lentBytes = scratchBytes + zeroedBytes;
  if (lentBytes) text += fmt::format(", {} of scratch memory", bytesText(lentBytes));
  if (!warning.empty()) text += "\n  warning: " + warning;
  for (const Dispatch& dispatch : dispatches) text += "\n  " + dispatch.text();
  return text;
}

}  // namespace mnk
