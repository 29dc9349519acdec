#include "SoftEncoder.hpp"

#include <algorithm>

#include "DeclaredAccesses.hpp"

namespace softmetal {

namespace {

using Argument = mnk::Pipeline::Argument;

std::string sizeText(MTL::Size size) {
  return fmt::format("{}x{}x{}", NS::UInteger(size.width), NS::UInteger(size.height), NS::UInteger(size.depth));
}

bool hasZero(MTL::Size size) {
  return size.width == 0 || size.height == 0 || size.depth == 0;
}

mnk::Size3 size3(MTL::Size size) {
  return {static_cast<uint32_t>(size.width), static_cast<uint32_t>(size.height), static_cast<uint32_t>(size.depth)};
}

bool isInside(const mnk::Region& region, uint64_t length) {
  return region.rows == 0 || (region.offset <= length && region.end() <= length);
}

// Checks an encoder's bindings against a dispatch, and creates the dispatch that the Host device runs.
class DispatchMaker {
 public:
  explicit DispatchMaker(SoftEncoder& encoder) : encoder_(encoder) {}

  // Empty if a rule is broken; all violations have been recorded.
  std::optional<RecordedStep> make(mnk::Grid::Unit unit, MTL::Size extent, MTL::Size group) {
    SoftPipeline* const pipeline = encoder_.pipeline;
    if (!pipeline) {
      refuse("a dispatch without a pipeline");
      return std::nullopt;
    }
    if (pipeline->isDead) {
      encoder_.pipeline = nullptr;
      refuse("{} is deallocated", pipeline->describe());
      return std::nullopt;
    }
    checkGrid(unit, extent, group);
    checkThreadgroupMemory();
    readDeclarations();
    mnk::Dispatch dispatch;
    dispatch.kernel = pipeline->key;
    if (declared_) dispatch.kind = declared_->op(pipeline->key.function);
    if (declared_ && declared_->writesSome) dispatch.bytesWritten = 0;
    dispatch.grid = {unit, size3(extent), size3(group)};
    for (const Argument& argument : pipeline->host->arguments()) bind(argument, dispatch);
    if (!isFine_) return std::nullopt;
    checkHazards(dispatch);
    if (!isFine_) return std::nullopt;
    RecordedStep step;
    step.dispatch = {std::move(dispatch), pipeline->host, size3(group)};
    if (!encoder_.debugGroups.empty()) step.group = encoder_.debugGroups.back();
    return step;
  }

 private:
  template <typename... Values>
  void refuse(fmt::format_string<Values...> text, Values&&... values) {
    isFine_ = false;
    const std::string what = fmt::format(text, std::forward<Values>(values)...);
    const SoftPipeline* pipeline = encoder_.pipeline;
    encoder_.breakRule("{}", pipeline ? fmt::format("kernel {}: {}", pipeline->key.function, what) : what);
  }

  void checkGrid(mnk::Grid::Unit unit, MTL::Size extent, MTL::Size group) {
    const DeviceDescription& about = encoder_.device()->about;
    const NS::UInteger sizes[] = {group.width, group.height, group.depth};
    if (hasZero(group)) return refuse("threads per threadgroup {} has a zero", sizeText(group));
    if (hasZero(extent)) return refuse("the grid {} has a zero", sizeText(extent));
    bool fits = true;
    NS::UInteger threads = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
      fits = fits && sizes[axis] <= about.maxThreadsPerThreadgroup[axis];
      threads = fits ? threads * sizes[axis] : threads;
    }
    if (!fits || threads > about.maxTotalThreadsPerThreadgroup) {
      refuse("threads per threadgroup {} are more than the pipeline's {}", sizeText(group),
             about.maxTotalThreadsPerThreadgroup);
    }
    const bool canBeUneven = encoder_.device()->supports(MTL::GPUFamilyApple4) ||
                             encoder_.device()->supports(MTL::GPUFamilyMac2) ||
                             encoder_.device()->supports(MTL::GPUFamilyMetal3);
    if (unit == mnk::Grid::Unit::threads && !canBeUneven) {
      refuse("dispatchThreads: needs nonuniform threadgroups, which the device does not have");
    }
  }

  void checkThreadgroupMemory() {
    const DeviceDescription& about = encoder_.device()->about;
    uint64_t bytes = about.staticThreadgroupMemoryLength;
    for (const uint64_t length : encoder_.threadgroupBytes) bytes += length;
    if (bytes > about.maxThreadgroupMemoryLength) {
      refuse("{} bytes of threadgroup memory are more than the device's {}", bytes, about.maxThreadgroupMemoryLength);
    }
  }

  void readDeclarations() {
    if (encoder_.debugGroups.empty()) return;
    const std::string& text = encoder_.debugGroups.back();
    GroupText group = readGroup(text);
    if (!group.declares) return;
    if (!group.accesses) return refuse("debug group '{}' declares accesses that cannot be read", text);
    if (!group.accesses->names(encoder_.pipeline->key.function)) {
      refuse("debug group '{}' names another kernel", text);
    }
    declared_ = std::move(group.accesses);
  }

  void declare(mnk::Binding& binding, const BufferSlot& slot, bool isReadOnly) {
    if (declared_) {
      if (const auto length = declared_->lengths.find(binding.index); length != declared_->lengths.end()) {
        if (length->second > binding.length) {
          refuse("{} bytes are declared at buffer {}, and {} has {} there", length->second, binding.index,
                 slot.buffer->describe(), binding.length);
          return;
        }
        binding.length = length->second;
        binding.reads = declared_->reads[binding.index];
        binding.writes = declared_->writes[binding.index];
        const auto fits = [&](const mnk::Region& region) { return isInside(region, binding.length); };
        if (!std::all_of(binding.reads.begin(), binding.reads.end(), fits) ||
            !std::all_of(binding.writes.begin(), binding.writes.end(), fits)) {
          refuse("an access is declared outside of the {} bytes bound at buffer {}", binding.length, binding.index);
        }
        if (isReadOnly && !binding.writes.empty()) {
          refuse("writes are declared at buffer {}, which the kernel only reads", binding.index);
        }
        return;
      }
      refuse("the debug group declares no length for buffer {}", binding.index);
    }
    binding.reads = {{.offset = 0, .rowBytes = binding.length}};
    if (!isReadOnly) binding.writes = binding.reads;
  }

  void bindBuffer(const Argument& argument, const BufferSlot& slot, mnk::Dispatch& dispatch) {
    if (slot.buffer->isDead) {
      return refuse("{} at buffer {} is deallocated", slot.buffer->describe(), argument.index);
    }
    const uint64_t length = slot.buffer->bytes - slot.offset;
    if (length < argument.minimumBytes) {
      return refuse("{} bytes of {} are bound at buffer {}, expected at least {}", length, slot.buffer->describe(),
                    argument.index, argument.minimumBytes);
    }
    if (slot.offset % argument.alignment != 0) {
      return refuse("buffer {} is bound at byte {} of {}, expected a multiple of {}", argument.index, slot.offset,
                    slot.buffer->describe(), argument.alignment);
    }
    mnk::Binding binding{.index = argument.index, .buffer = slot.buffer->host, .offset = slot.offset, .length = length};
    declare(binding, slot, argument.isReadOnly);
    dispatch.buffers.push_back(std::move(binding));
  }

  void bind(const Argument& argument, mnk::Dispatch& dispatch) {
    if (argument.kind == Argument::Kind::threadgroupMemory) {
      const uint64_t bytes = encoder_.threadgroupBytes[argument.index];
      if (bytes == 0) return refuse("no length is set for threadgroup memory {}", argument.index);
      if (bytes < argument.minimumBytes) {
        return refuse("{} bytes are set for threadgroup memory {}, expected at least {}", bytes, argument.index,
                      argument.minimumBytes);
      }
      dispatch.threadgroupMemory.push_back({argument.index, static_cast<uint32_t>(bytes)});
      return;
    }
    const BufferSlot& slot = encoder_.slots[argument.index];
    if (slot.isEmpty()) return refuse("nothing is bound at buffer {}", argument.index);
    if (slot.buffer) return bindBuffer(argument, slot, dispatch);
    if (slot.bytes.size() < argument.minimumBytes) {
      return refuse("{} bytes are set at buffer {}, expected at least {}", slot.bytes.size(), argument.index,
                    argument.minimumBytes);
    }
    if (!argument.isReadOnly) {
      return refuse("setBytes: is used for buffer {}, which the kernel writes", argument.index);
    }
    dispatch.inlines.push_back({argument.index, slot.bytes});
  }

  void checkHazards(const mnk::Dispatch& dispatch) {
    if (!declared_) return;
    std::vector<DeclaredAccess> accesses;
    for (const mnk::Binding& binding : dispatch.buffers) {
      const SoftBuffer* buffer = encoder_.slots[binding.index].buffer;
      const auto add = [&](const std::vector<mnk::Region>& regions, bool isWrite) {
        for (const mnk::Region& region : regions) {
          accesses.push_back({.isUntracked = buffer->isUntracked(),
                              .begin = binding.buffer->range().begin + binding.offset,
                              .region = region,
                              .isWrite = isWrite,
                              .kernel = dispatch.kernel.function,
                              .bufferName = buffer->describe()});
        }
      };
      add(binding.reads, false);
      add(binding.writes, true);
    }
    if (const auto conflict = encoder_.buffer->hazards.add(accesses)) {
      isFine_ = false;
      encoder_.breakRule("{}", *conflict);
    }
  }

  SoftEncoder& encoder_;
  bool isFine_ = true;
  std::optional<DeclaredAccesses> declared_;
};

}  // namespace

void SoftEncoder::finish() {
  if (!isEnded) {
    breakRule("it was released without endEncoding");
    buffer->openEncoder = nullptr;
  }
  slots = {};
  atEnd = {};
  buffer = {};
}

bool SoftEncoder::isOpen() {
  if (!isEnded) return true;
  breakRule("{} was sent after endEncoding", currentSelector());
  return false;
}

void SoftEncoder::endEncoding() {
  if (!isOpen()) return;
  if (!debugGroups.empty()) {
    breakRule("endEncoding inside of debug group '{}': push and pop do not balance", debugGroups.back());
  }
  if (auto [samples, index] = std::exchange(atEnd, {}); samples) addSample(samples.get(), index);
  isEnded = true;
  record.label = labelText();
  buffer->hazards.endEncoder();
  buffer->openEncoder = nullptr;
  buffer->encoders.push_back(std::move(record));
}

void SoftEncoder::pushDebugGroup(Object* text) {
  if (!isOpen()) return;
  if (!text) breakRule("pushDebugGroup: has no text");
  debugGroups.push_back(textOf(text).value_or(""));
}

void SoftEncoder::popDebugGroup() {
  if (!isOpen()) return;
  if (debugGroups.empty()) return breakRule("popDebugGroup without a group that is open");
  debugGroups.pop_back();
}

bool SoftEncoder::isOurs(SoftDevice* other, const Object& object) {
  if (other == device()) return true;
  breakRule("{} belongs to another device, {}", object.describe(), other->describe());
  return false;
}

bool SoftEncoder::isIndexFine(NS::UInteger index, size_t count) {
  if (index < count) return true;
  breakRule("{} has index {}, expected at most {}", currentSelector(), index, count - 1);
  return false;
}

void SoftEncoder::setComputePipelineState(SoftPipeline* newPipeline) {
  if (!isOpen()) return;
  pipeline = nullptr;
  if (!usable(newPipeline)) return breakRule("setComputePipelineState: has no pipeline");
  if (!isOurs(newPipeline->owner.get(), *newPipeline)) return;
  pipeline = newPipeline;
  buffer->use(newPipeline);
}

void SoftEncoder::setBuffer(SoftBuffer* newBuffer, NS::UInteger offset, NS::UInteger index) {
  if (!isOpen() || !isIndexFine(index, kBufferIndices)) return;
  slots[index] = {};
  if (!newBuffer) return;  // unbinds
  if (!usable(newBuffer)) return breakRule("setBuffer: has no buffer");
  if (!isOurs(newBuffer->owner.get(), *newBuffer)) return;
  if (offset >= newBuffer->bytes) {
    return breakRule("offset {} at buffer {} lies beyond the end of {} of {} bytes", offset, index,
                     newBuffer->describe(), newBuffer->bytes);
  }
  slots[index] = {newBuffer, offset, {}};
  buffer->use(newBuffer);
}

void SoftEncoder::setBytes(const void* bytes, NS::UInteger length, NS::UInteger index) {
  if (!isOpen() || !isIndexFine(index, kBufferIndices)) return;
  slots[index] = {};
  if (!bytes || length == 0 || length > kMaxInlineBytes) {
    return breakRule("setBytes: has {} bytes at buffer {}, expected 1 to {}", bytes ? length : 0, index,
                     kMaxInlineBytes);
  }
  const auto* first = static_cast<const std::byte*>(bytes);
  slots[index].bytes.assign(first, first + length);
  count(&Counters::inlineBytes, length);
}

void SoftEncoder::setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) {
  if (!isOpen() || !isIndexFine(index, kThreadgroupIndices)) return;
  if (length % 16 != 0) {
    return breakRule("setThreadgroupMemoryLength: has {} bytes, expected a multiple of 16", length);
  }
  threadgroupBytes[index] = length;
}

template <mnk::Grid::Unit Unit>
void SoftEncoder::dispatch(MTL::Size extent, MTL::Size group) {
  if (!isOpen()) return;
  if (auto step = DispatchMaker(*this).make(Unit, extent, group)) record.steps.push_back(std::move(*step));
  if (!record.isConcurrent) buffer->hazards.barrier();
}

void SoftEncoder::memoryBarrier(MTL::BarrierScope scope) {
  if (!isOpen()) return;
  if (!(scope & MTL::BarrierScopeBuffers)) return;  // does not order buffers
  record.steps.push_back({.isBarrier = true});
  buffer->hazards.barrier();
}

void traceSteps(const SoftCommandBuffer& buffer) {
  std::vector<std::string> lines, groups;
  for (const EncoderRecord& encoder : buffer.encoders) {
    lines.push_back(fmt::format("encoder '{}' {}", encoder.label, encoder.isConcurrent ? "concurrent" : "serial"));
    for (const RecordedStep& step : encoder.steps) {
      if (step.isBarrier || !step.note.empty()) {
        lines.push_back(step.isBarrier ? "barrier" : step.note);
        continue;
      }
      const mnk::Grid& grid = step.dispatch.dispatch.grid;
      const auto text = [](const mnk::Size3& size) { return fmt::format("{}x{}x{}", size[0], size[1], size[2]); };
      lines.push_back(fmt::format("dispatch {} {} {} group {}", step.dispatch.dispatch.kernel.function,
                                  grid.unit == mnk::Grid::Unit::threads ? "grid" : "groups", text(grid.extent),
                                  text(grid.threadgroup)));
      groups.push_back(step.group);
    }
  }
  setTrace(std::move(lines), std::move(groups));
}

void defineEncoder() {
  define<SoftEncoder>("MTLComputeCommandEncoder")
      .on<&SoftEncoder::endEncoding>("endEncoding")
      .on<&SoftEncoder::pushDebugGroup>("pushDebugGroup:")
      .on<&SoftEncoder::popDebugGroup>("popDebugGroup")
      .on<&SoftEncoder::setComputePipelineState>("setComputePipelineState:")
      .on<&SoftEncoder::setBuffer>("setBuffer:offset:atIndex:")
      .on<&SoftEncoder::setBytes>("setBytes:length:atIndex:")
      .on<&SoftEncoder::setThreadgroupMemoryLength>("setThreadgroupMemoryLength:atIndex:")
      .on<&SoftEncoder::dispatch<mnk::Grid::Unit::threads>>("dispatchThreads:threadsPerThreadgroup:")
      .on<&SoftEncoder::dispatch<mnk::Grid::Unit::threadgroups>>("dispatchThreadgroups:threadsPerThreadgroup:")
      .on<&SoftEncoder::memoryBarrier>("memoryBarrierWithScope:")
      .on<&SoftEncoder::sampleCounters>("sampleCountersInBuffer:atSampleIndex:withBarrier:")
      .on<&SoftEncoder::updateFence>("updateFence:")
      .on<&SoftEncoder::waitForFence>("waitForFence:");
}

}  // namespace softmetal
