#include "Encoding/DispatchRules.hpp"

#include <algorithm>

#include "Encoding/ThreadgroupShape.hpp"
#include "Support/CheckedMath.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Check = DispatchCheck;
using Argument = Pipeline::Argument;

std::vector<uint32_t> boundIndices(const Dispatch& dispatch) {
  std::vector<uint32_t> indices;
  for (const Binding& binding : dispatch.buffers) indices.push_back(binding.index);
  for (const InlineBytes& bytes : dispatch.inlines) indices.push_back(bytes.index);
  std::sort(indices.begin(), indices.end());
  return indices;
}

uint64_t threadgroupBytes(const Check& check) {
  uint64_t bytes = check.pipeline.staticThreadgroupBytes();
  for (const ThreadgroupMemory& memory : check.dispatch.threadgroupMemory) bytes += memory.bytes;
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

const Argument* firstMissing(const Check& check) {
  return firstWhere(check.pipeline.arguments(),
                    [&](const Argument& argument) { return !bytesFor(check.dispatch, argument); });
}

// A grid without threads touches nothing.
const Argument* firstTooShort(const Check& check) {
  if (check.dispatch.grid.isEmpty()) return nullptr;
  return firstWhere(check.pipeline.arguments(), [&](const Argument& argument) {
    const auto bytes = bytesFor(check.dispatch, argument);
    return bytes && *bytes < argument.minimumBytes && !(*bytes == 0 && argument.mayBeEmpty);
  });
}

const Argument* bufferArgument(const Check& check, uint32_t index) {
  return firstWhere(check.pipeline.arguments(), [&](const Argument& argument) {
    return argument.kind == Argument::Kind::buffer && argument.index == index;
  });
}

const InlineBytes* firstWritten(const Check& check) {
  return firstWhere(check.dispatch.inlines, [&](const InlineBytes& inlined) {
    const Argument* argument = bufferArgument(check, inlined.index);
    return argument && !argument->isReadOnly;
  });
}

const Binding* firstMisaligned(const Check& check) {
  return firstWhere(check.dispatch.buffers, [&](const Binding& binding) {
    const Argument* argument = bufferArgument(check, binding.index);
    const uint64_t address = binding.buffer->range().begin + binding.offset;
    return argument && binding.length != 0 && address % argument->alignment != 0;
  });
}

const Binding* firstOutside(const Check& check) {
  return firstWhere(check.dispatch.buffers, [](const Binding& binding) { return !isInside(binding); });
}

const Binding* firstForeign(const Check& check) {
  return firstWhere(check.dispatch.buffers,
                    [&](const Binding& binding) { return binding.buffer->device().get() != &check.device; });
}

uint32_t highestIndex(const Check& check) {
  const auto indices = boundIndices(check.dispatch);
  return indices.empty() ? 0 : indices.back();
}

const InlineBytes* firstBadInline(const Check& check) {
  return firstWhere(check.dispatch.inlines, [&](const InlineBytes& inlined) {
    return inlined.bytes.empty() || inlined.bytes.size() > check.device.limits().maxInlineBytes;
  });
}

const ThreadgroupMemory* firstBadThreadgroupIndex(const Check& check) {
  return firstWhere(check.dispatch.threadgroupMemory, [&](const ThreadgroupMemory& memory) {
    return memory.index >= check.device.limits().threadgroupMemoryIndices;
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

bool isOpen(const Size3& threadgroup) {
  return threadgroup == Size3{0, 0, 0};
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

constexpr Rule<Check> kRules[] = {
    {"a buffer index is out of range",
     [](const Check& check) { return highestIndex(check) < check.device.limits().bufferIndices; },
     [](const Check& check) { return fmt::format("index {}", highestIndex(check)); },
     [](const Check& check) { return fmt::format("at most {}", check.device.limits().bufferIndices - 1); },
     "Use the indices of the kernel's [[buffer(n)]] attributes."},

    {"two arguments are bound at one buffer index",
     [](const Check& check) {
       const auto indices = boundIndices(check.dispatch);
       return std::adjacent_find(indices.begin(), indices.end()) == indices.end();
     },
     [](const Check& check) {
       const auto indices = boundIndices(check.dispatch);
       return fmt::format("index {} twice", *std::adjacent_find(indices.begin(), indices.end()));
     },
     [](const Check&) { return std::string("one argument for each index"); }, "Bind each index once."},

    {"a binding has no memory",
     [](const Check& check) {
       return !firstWhere(check.dispatch.buffers, [](const Binding& binding) { return !binding.buffer; });
     },
     [](const Check& check) {
       const auto* empty = firstWhere(check.dispatch.buffers, [](const Binding& binding) { return !binding.buffer; });
       return fmt::format("no buffer at index {}", empty->index);
     },
     [](const Check&) { return std::string("a buffer, or scratch memory in a plan that asks for some"); },
     "Bind a tensor that has memory."},

    {"a binding reaches past its buffer", [](const Check& check) { return !firstOutside(check); },
     [](const Check& check) {
       const Binding& binding = *firstOutside(check);
       return fmt::format("{} at byte {} for index {}, with its reads and writes", countText(binding.length, "byte"),
                          binding.offset, binding.index);
     },
     [](const Check& check) {
       return fmt::format("a range inside {}, with reads and writes inside that range",
                          countText(firstOutside(check)->buffer->length(), "byte"));
     },
     "Bind a range inside the buffer."},

    {"a tensor belongs to another device", [](const Check& check) { return !firstForeign(check); },
     [](const Check& check) {
       const auto device = firstForeign(check)->buffer->device();
       return fmt::format("memory of {} at index {}", device ? "another device, " + device->name() + "," : "no device",
                          firstForeign(check)->index);
     },
     [](const Check& check) { return fmt::format("memory of the encoder's device, {}", check.device.name()); },
     "Make the tensor on the device that encodes."},

    {"inline bytes have the wrong size", [](const Check& check) { return !firstBadInline(check); },
     [](const Check& check) {
       const InlineBytes& inlined = *firstBadInline(check);
       return fmt::format("{} at index {}", countText(inlined.bytes.size(), "byte"), inlined.index);
     },
     [](const Check& check) { return fmt::format("1 to {} bytes", check.device.limits().maxInlineBytes); },
     "Put larger data in a tensor."},

    {"a threadgroup-memory index is out of range", [](const Check& check) { return !firstBadThreadgroupIndex(check); },
     [](const Check& check) { return fmt::format("index {}", firstBadThreadgroupIndex(check)->index); },
     [](const Check& check) { return fmt::format("at most {}", check.device.limits().threadgroupMemoryIndices - 1); },
     "Use the indices of the kernel's [[threadgroup_memory(n)]] attributes."},

    {"two threadgroup memories have one index, or one has no size",
     [](const Check& check) { return !firstRepeatedOrEmpty(check.dispatch); },
     [](const Check& check) {
       const ThreadgroupMemory& memory = *firstRepeatedOrEmpty(check.dispatch);
       return fmt::format("{} at index {}", countText(memory.bytes, "byte"), memory.index);
     },
     [](const Check&) { return std::string("at least 1 byte, once for each index"); },
     "Bind each index once, with a size."},

    {"the dispatch asks for too much threadgroup memory",
     [](const Check& check) { return threadgroupBytes(check) <= check.device.limits().maxThreadgroupMemoryBytes; },
     [](const Check& check) { return countText(threadgroupBytes(check), "byte"); },
     [](const Check& check) { return fmt::format("at most {}", check.device.limits().maxThreadgroupMemoryBytes); },
     "Use less threadgroup memory."},

    {"an argument of the kernel is not bound", [](const Check& check) { return !firstMissing(check); },
     [](const Check& check) {
       const Argument& argument = *firstMissing(check);
       return fmt::format("nothing at {}", argumentText(argument));
     },
     [](const Check& check) { return fmt::format("every argument of {}", check.dispatch.kernel.text()); },
     "Bind every argument that the kernel declares."},

    {"an argument of the kernel is bound to too few bytes", [](const Check& check) { return !firstTooShort(check); },
     [](const Check& check) {
       const Argument& argument = *firstTooShort(check);
       return fmt::format("{} for {}", countText(bytesFor(check.dispatch, argument).value_or(0), "byte"),
                          argumentText(argument));
     },
     [](const Check& check) {
       return fmt::format("at least {}", countText(firstTooShort(check)->minimumBytes, "byte"));
     },
     "Bind memory for what the kernel's parameter points to."},

    {"inline bytes are bound at an argument that the kernel may write",
     [](const Check& check) { return !firstWritten(check); },
     [](const Check& check) { return fmt::format("inline bytes at buffer {}", firstWritten(check)->index); },
     [](const Check&) { return std::string("a tensor"); }, "Bind a tensor, or make the kernel's parameter constant."},

    {"a binding starts where its argument cannot", [](const Check& check) { return !firstMisaligned(check); },
     [](const Check& check) {
       const Binding& binding = *firstMisaligned(check);
       return fmt::format("byte {} for buffer {}", binding.offset, binding.index);
     },
     [](const Check& check) {
       return fmt::format("a multiple of {} bytes", bufferArgument(check, firstMisaligned(check)->index)->alignment);
     },
     "Bind a tensor that starts at a multiple of the kernel's type, or use a smaller type there."},

    {"the threadgroup size is missing",
     [](const Check& check) {
       const Size3& group = check.dispatch.grid.threadgroup;
       return threadCount(group) != 0 || (isOpen(group) && check.dispatch.grid.unit == Grid::Unit::threads);
     },
     [](const Check& check) { return sizeText(check.dispatch.grid.threadgroup); },
     [](const Check&) { return std::string("at least 1 x 1 x 1, or 0 x 0 x 0 with a grid of threads"); },
     "Give every axis at least one thread."},

    {"the threadgroup is larger than the pipeline allows",
     [](const Check& check) {
       return threadCount(check.dispatch.grid.threadgroup) <= check.pipeline.maxThreadsPerThreadgroup();
     },
     [](const Check& check) { return fmt::format("{} threads", sizeText(check.dispatch.grid.threadgroup)); },
     [](const Check& check) { return fmt::format("at most {}", check.pipeline.maxThreadsPerThreadgroup()); },
     "Use smaller threadgroups."},

    {"the grid has more threads than can be counted",
     [](const Check& check) { return isCountable(check.dispatch.grid); },
     [](const Check& check) {
       return fmt::format("{} {}", sizeText(check.dispatch.grid.extent),
                          check.dispatch.grid.unit == Grid::Unit::threads ? "threads" : "threadgroups");
     },
     [](const Check&) { return std::string("fewer than 2^32 threads on an axis and 2^63 in all"); },
     "Split the work into several dispatches."},
};

}  // namespace

std::span<const Rule<DispatchCheck>> dispatchRules() {
  return kRules;
}

}  // namespace mnk
