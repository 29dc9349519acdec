#include <algorithm>

#include "Common/FunctionConstants.h"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"
#include "Runtime/DispatchRules.hpp"
#include "Support/Bytes.hpp"
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

// Eight simdgroups; larger threadgroups only waste more threads at the edges of a grid.
constexpr uint32_t kPreferredThreads = 256;

using Op = DispatchCheck;
using Argument = Pipeline::Argument;

std::vector<uint32_t> boundIndices(const Dispatch& dispatch) {
  std::vector<uint32_t> indices;
  for (const Binding& binding : dispatch.buffers) indices.push_back(binding.index);
  for (const InlineBytes& bytes : dispatch.inlines) indices.push_back(bytes.index);
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::optional<uint32_t> firstRepeated(const Op& op) {
  const auto indices = boundIndices(op.dispatch);
  const auto found = std::adjacent_find(indices.begin(), indices.end());
  return found == indices.end() ? std::nullopt : std::optional(*found);
}

uint64_t threadgroupBytes(const Op& op) {
  uint64_t bytes = op.pipeline.staticThreadgroupBytes();
  constexpr uint64_t kUnit = 16;  // of which some devices take only multiples
  for (const ThreadgroupMemory& memory : op.dispatch.threadgroupMemory) {
    bytes += (memory.bytes + kUnit - 1) / kUnit * kUnit;
  }
  return bytes;
}

bool isInside(const Binding& binding) {
  const auto inside = [&](const Region& region) {
    const auto stride = checkedMultiply(region.rowStride, region.rows == 0 ? 0 : region.rows - 1);
    const auto length = stride ? checkedAdd(*stride, region.rowBytes) : std::nullopt;
    return region.rows == 0 || (length && fits(region.offset, *length, binding.length));
  };
  return fits(binding.offset, binding.length, binding.buffer->length()) &&
         std::all_of(binding.reads.begin(), binding.reads.end(), inside) &&
         std::all_of(binding.writes.begin(), binding.writes.end(), inside);
}

template <typename List, typename Test>
auto firstWhere(const List& list, Test test) {
  const auto found = std::find_if(list.begin(), list.end(), test);
  return found == list.end() ? nullptr : &*found;
}

std::string argumentText(const Argument& argument) {
  return fmt::format("{} {}", argument.kind == Argument::Kind::buffer ? "buffer" : "threadgroup memory",
                     argument.index);
}

// What is bound for an argument, in bytes.
std::optional<uint64_t> bytesFor(const Dispatch& dispatch, const Argument& argument) {
  const auto find = [&](const auto& list, auto bytes) -> std::optional<uint64_t> {
    for (const auto& entry : list) {
      if (entry.index == argument.index) return bytes(entry);
    }
    return std::nullopt;
  };
  if (argument.kind == Argument::Kind::threadgroupMemory) {
    return find(dispatch.threadgroupMemory, [](const ThreadgroupMemory& memory) { return memory.bytes; });
  }
  const auto buffer = find(dispatch.buffers, [](const Binding& binding) { return binding.length; });
  return buffer ? buffer : find(dispatch.inlines, [](const InlineBytes& inlined) { return inlined.bytes.size(); });
}

const Argument* firstMissing(const Op& op) {
  return firstWhere(op.pipeline.arguments(),
                    [&](const Argument& argument) { return !bytesFor(op.dispatch, argument); });
}

const Argument* firstTooShort(const Op& op) {
  return firstWhere(op.pipeline.arguments(), [&](const Argument& argument) {
    const auto bytes = bytesFor(op.dispatch, argument);
    return bytes && *bytes < argument.minimumBytes && !(*bytes == 0 && argument.mayBeEmpty);
  });
}

std::string tooShortText(const Op& op, const Argument& argument) {
  return fmt::format("{} for {}", countText(bytesFor(op.dispatch, argument).value_or(0), "byte"),
                     argumentText(argument));
}

const Argument* bufferArgument(const Op& op, uint32_t index) {
  return firstWhere(op.pipeline.arguments(), [&](const Argument& argument) {
    return argument.kind == Argument::Kind::buffer && argument.index == index;
  });
}

const InlineBytes* firstWritten(const Op& op) {
  return firstWhere(op.dispatch.inlines, [&](const InlineBytes& inlined) {
    const Argument* argument = bufferArgument(op, inlined.index);
    return argument && !argument->isReadOnly;
  });
}

// Shorter ones are found as too short.
const InlineBytes* firstLongValue(const Op& op) {
  return firstWhere(op.dispatch.inlines, [&](const InlineBytes& inlined) {
    const Argument* argument = inlined.isValue ? bufferArgument(op, inlined.index) : nullptr;
    return argument && argument->minimumBytes != 0 && inlined.bytes.size() > argument->minimumBytes;
  });
}

const Binding* firstMisaligned(const Op& op) {
  return firstWhere(op.dispatch.buffers, [&](const Binding& binding) {
    const Argument* argument = bufferArgument(op, binding.index);
    const uint64_t address = binding.buffer->range().begin + binding.offset;
    return argument && binding.length != 0 && address % argument->alignment != 0;
  });
}

const Binding* firstEmpty(const Op& op) {
  return firstWhere(op.dispatch.buffers, [](const Binding& binding) { return !binding.buffer; });
}

const Binding* firstOutside(const Op& op) {
  return firstWhere(op.dispatch.buffers, [](const Binding& binding) { return !isInside(binding); });
}

std::string outsideText(const Binding& binding) {
  return fmt::format("{} at byte {} for index {}, with its reads and writes", countText(binding.length, "byte"),
                     binding.offset, binding.index);
}

const Binding* firstForeign(const Op& op) {
  return firstWhere(op.dispatch.buffers, [&](const Binding& binding) { return !binding.buffer->isOf(op.device); });
}

std::string foreignText(const Binding& binding) {
  const auto device = binding.buffer->device();
  return fmt::format("memory of {} at index {}", device ? "another device, " + device->name() + "," : "no device",
                     binding.index);
}

uint32_t highestIndex(const Op& op) {
  const auto indices = boundIndices(op.dispatch);
  return indices.empty() ? 0 : indices.back();
}

const InlineBytes* firstBadInline(const Op& op) {
  return firstWhere(op.dispatch.inlines, [&](const InlineBytes& inlined) {
    return inlined.bytes.empty() || inlined.bytes.size() > op.device.limits().maxInlineBytes;
  });
}

const ThreadgroupMemory* firstBadThreadgroupIndex(const Op& op) {
  return firstWhere(op.dispatch.threadgroupMemory, [&](const ThreadgroupMemory& memory) {
    return memory.index >= op.device.limits().threadgroupMemoryIndices;
  });
}

const ThreadgroupMemory* firstRepeatedOrEmpty(const Dispatch& dispatch) {
  const auto& memories = dispatch.threadgroupMemory;
  return firstWhere(memories, [&](const ThreadgroupMemory& memory) {
    const bool isRepeated = std::any_of(
        memories.data(), &memory, [&](const ThreadgroupMemory& earlier) { return earlier.index == memory.index; });
    return isRepeated || memory.bytes == 0;
  });
}

std::string sizeText(const Size3& size) {
  return fmt::format("{} x {} x {}", size[0], size[1], size[2]);
}

// Whether the device chooses the threadgroup size.
bool hasOpenThreadgroup(const Grid& grid) {
  return grid.threadgroup == Size3{0, 0, 0} && grid.unit == Grid::Unit::threads;
}

std::string gridText(const Grid& grid) {
  return fmt::format("{} {}", sizeText(grid.extent), grid.unit == Grid::Unit::threads ? "threads" : "threadgroups");
}

bool isCountable(const Grid& grid) {
  std::optional<uint64_t> threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint64_t group = grid.unit == Grid::Unit::threads ? 1 : grid.threadgroup[axis];
    const uint64_t along = grid.extent[axis] * group;
    threads = threads && along <= UINT32_MAX ? checkedMultiply(*threads, along) : std::nullopt;
  }
  return threads && *threads <= INT64_MAX;
}

constexpr Rule<Op> kRules[] = {
    INVALID_IF(highestIndex(op) >= op.device.limits().bufferIndices, "a buffer index is out of range",
               fmt::format("index {}", highestIndex(op)),
               fmt::format("at most {}", op.device.limits().bufferIndices - 1),
               "Use the indices of the kernel's [[buffer(n)]] attributes."),

    INVALID_IF(firstRepeated(op), "two arguments are bound at one buffer index",
               fmt::format("index {} twice", *firstRepeated(op)), "one argument for each index",
               "Bind each index once."),

    INVALID_IF(firstEmpty(op), "a binding has no memory", fmt::format("no buffer at index {}", firstEmpty(op)->index),
               "a buffer, or scratch memory in a plan that asks for some", "Bind a tensor that has memory."),

    INVALID_IF(firstOutside(op), "a binding reaches past its buffer", outsideText(*firstOutside(op)),
               fmt::format("a range inside {}, with reads and writes inside that range",
                           countText(firstOutside(op)->buffer->length(), "byte")),
               "Bind a range inside the buffer."),

    INVALID_IF(firstForeign(op), "a tensor belongs to another device", foreignText(*firstForeign(op)),
               fmt::format("memory of the encoder's device, {}", op.device.name()),
               "Make the tensor on the device that encodes."),

    INVALID_IF(
        firstBadInline(op), "inline bytes have the wrong size",
        fmt::format("{} at index {}", countText(firstBadInline(op)->bytes.size(), "byte"), firstBadInline(op)->index),
        fmt::format("1 to {} bytes", op.device.limits().maxInlineBytes), "Put larger data in a tensor."),

    INVALID_IF(firstBadThreadgroupIndex(op), "a threadgroup-memory index is out of range",
               fmt::format("index {}", firstBadThreadgroupIndex(op)->index),
               fmt::format("at most {}", op.device.limits().threadgroupMemoryIndices - 1),
               "Use the indices of the kernel's [[threadgroup_memory(n)]] attributes."),

    INVALID_IF(firstRepeatedOrEmpty(op.dispatch), "two threadgroup memories have one index, or one has no size",
               fmt::format("{} at index {}", countText(firstRepeatedOrEmpty(op.dispatch)->bytes, "byte"),
                           firstRepeatedOrEmpty(op.dispatch)->index),
               "at least 1 byte, once for each index", "Bind each index once, with a size."),

    INVALID_IF(threadgroupBytes(op) > op.device.limits().maxThreadgroupMemoryBytes,
               "the dispatch asks for too much threadgroup memory", countText(threadgroupBytes(op), "byte"),
               fmt::format("at most {}", op.device.limits().maxThreadgroupMemoryBytes), "Use less threadgroup memory."),

    INVALID_IF(firstMissing(op), "an argument of the kernel is not bound",
               fmt::format("nothing at {}", argumentText(*firstMissing(op))),
               fmt::format("every argument of {}", op.dispatch.kernel.text()),
               "Bind every argument that the kernel declares."),

    INVALID_IF(firstTooShort(op), "an argument of the kernel is bound to too few bytes",
               tooShortText(op, *firstTooShort(op)),
               fmt::format("at least {}", countText(firstTooShort(op)->minimumBytes, "byte")),
               "Bind memory for what the kernel's parameter points to."),

    INVALID_IF(firstLongValue(op), "a value is larger than the kernel's parameter",
               fmt::format("a value of {} for buffer {}", countText(firstLongValue(op)->bytes.size(), "byte"),
                           firstLongValue(op)->index),
               countText(bufferArgument(op, firstLongValue(op)->index)->minimumBytes, "byte"),
               "Pass a value of the parameter's type: 4 bytes for float, int and uint. Pass several values as bytes."),

    INVALID_IF(firstWritten(op), "inline bytes are bound at an argument that the kernel may write",
               fmt::format("inline bytes at buffer {}", firstWritten(op)->index), "a tensor",
               "Bind a tensor, or make the kernel's parameter constant."),

    INVALID_IF(firstMisaligned(op), "a binding starts where its argument cannot",
               fmt::format("byte {} for buffer {}", firstMisaligned(op)->offset, firstMisaligned(op)->index),
               fmt::format("a multiple of {} bytes", bufferArgument(op, firstMisaligned(op)->index)->alignment),
               "Bind a tensor that starts at a multiple of the kernel's type, or use a smaller type there."),

    INVALID_IF(threadCount(op.dispatch.grid.threadgroup) == 0 && !hasOpenThreadgroup(op.dispatch.grid),
               "the threadgroup size is missing", sizeText(op.dispatch.grid.threadgroup),
               "at least 1 x 1 x 1, or 0 x 0 x 0 with a grid of threads", "Give every axis at least one thread."),

    INVALID_IF(threadCount(op.dispatch.grid.threadgroup) > op.pipeline.maxThreadsPerThreadgroup(),
               "the threadgroup is larger than the pipeline allows",
               fmt::format("{} threads", sizeText(op.dispatch.grid.threadgroup)),
               fmt::format("at most {}", op.pipeline.maxThreadsPerThreadgroup()), "Use smaller threadgroups."),

    INVALID_IF(op.dispatch.grid.isEmpty(), "the grid has no threads", gridText(op.dispatch.grid),
               "at least 1 on every axis", "Write 1 for unused axes, and leave out a dispatch that has no work."),

    INVALID_IF(!isCountable(op.dispatch.grid), "the grid has more threads than can be counted",
               gridText(op.dispatch.grid), "fewer than 2^32 threads on an axis and 2^63 in all",
               "Split the work into several dispatches."),
};

}  // namespace

std::string_view name(ConstantType type) {
  static constexpr std::string_view kNames[] = {"bool", "int", "uint", "float"};
  return nameIn(kNames, static_cast<size_t>(type), "unknown type");
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

uint64_t threadCount(const Size3& threadgroup) {
  const uint64_t plane = uint64_t{threadgroup[0]} * threadgroup[1];
  uint64_t count;
  return __builtin_mul_overflow(plane, threadgroup[2], &count) ? UINT64_MAX : count;
}

Size3 threadgroupFor(const Size3& grid, uint32_t maxThreads) {
  uint32_t left = std::max(1u, std::min(kPreferredThreads, maxThreads));
  Size3 shape{1, 1, 1};
  for (size_t axis = 0; axis < 3; ++axis) {
    shape[axis] = std::max(1u, std::min(grid[axis], left));
    left /= shape[axis];
  }
  return shape;
}

Size3 shrinkToLimit(uint32_t maxThreads, Size3 threadgroup) {
  constexpr uint32_t kSimdgroup = 32;
  threadgroup[0] = std::min(threadgroup[0], std::max(maxThreads / kSimdgroup, 1u) * kSimdgroup);
  return threadgroup;
}

Grid shrinkToLimit(uint32_t maxThreads, Grid grid) {
  const uint32_t fewest = grid.minThreads;
  if (fewest == 0) return grid;
  const uint32_t planned = grid.threadgroup[0] / fewest;
  grid.threadgroup = shrinkToLimit(std::max(maxThreads, fewest), grid.threadgroup);
  const uint32_t left = std::max(grid.threadgroup[0] / fewest, 1u);
  if (grid.isShared && left < planned) grid.extent[2] *= (planned + left - 1) / left;
  return grid;
}

std::span<const Rule<DispatchCheck>> dispatchRules() {
  return kRules;
}

}  // namespace mnk
