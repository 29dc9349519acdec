#include "DispatchMaker.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

void DispatchMaker::refuse(std::string what) {
  isFine_ = false;
  encoder_.breakRule(encoder_.pipeline ? fmt::format("kernel {}: {}", encoder_.pipeline->key.function, what)
                                       : std::move(what));
}

void DispatchMaker::checkGrid(mnk::Grid::Unit unit, MTL::Size extent, MTL::Size group) {
  const SoftPipeline& pipeline = *encoder_.pipeline;
  const DeviceDescription& about = encoder_.device()->about;
  const NS::UInteger sizes[] = {group.width, group.height, group.depth};
  if (hasZero(group)) return refuse(fmt::format("threads per threadgroup {} has a zero", sizeText(group)));
  if (hasZero(extent)) return refuse(fmt::format("the grid {} has a zero", sizeText(extent)));
  bool fits = true;
  NS::UInteger threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    fits = fits && sizes[axis] <= about.maxThreadsPerThreadgroup[axis];
    threads = fits ? threads * sizes[axis] : threads;
  }
  if (!fits || threads > pipeline.maxThreads) {
    refuse(fmt::format("threads per threadgroup {} are more than the pipeline's {}", sizeText(group),
                       pipeline.maxThreads));
  } else if (pipeline.isMultipleOfWidth && threads % about.threadExecutionWidth != 0) {
    refuse(fmt::format("the pipeline was promised whole simdgroups of {}, got {} threads", about.threadExecutionWidth,
                       threads));
  }
  const bool canBeUneven = encoder_.device()->supports(MTL::GPUFamilyApple4) ||
                           encoder_.device()->supports(MTL::GPUFamilyMac2) ||
                           encoder_.device()->supports(MTL::GPUFamilyMetal3);
  if (unit == mnk::Grid::Unit::threads && !canBeUneven) {
    refuse("dispatchThreads: needs nonuniform threadgroups, which the device does not have");
  }
}

void DispatchMaker::checkThreadgroupMemory() {
  const DeviceDescription& about = encoder_.device()->about;
  uint64_t bytes = about.staticThreadgroupMemoryLength;
  for (const uint64_t length : encoder_.threadgroupBytes) bytes += length;
  if (bytes > about.maxThreadgroupMemoryLength) {
    refuse(fmt::format("{} bytes of threadgroup memory are more than the device's {}", bytes,
                       about.maxThreadgroupMemoryLength));
  }
}

void DispatchMaker::readDeclarations() {
  if (encoder_.debugGroups.empty()) return;
  const std::string& text = encoder_.debugGroups.back();
  GroupText group = readGroup(text);
  if (!group.declares) return;
  if (!group.accesses) return refuse(fmt::format("debug group '{}' declares accesses that cannot be read", text));
  if (!group.accesses->names(encoder_.pipeline->key.function)) {
    refuse(fmt::format("debug group '{}' names another kernel", text));
  }
  declared_ = std::move(group.accesses);
}

void DispatchMaker::declare(mnk::Binding& binding, const BufferSlot& slot, bool isReadOnly) {
  if (declared_) {
    if (const auto length = declared_->lengths.find(binding.index); length != declared_->lengths.end()) {
      if (length->second > binding.length) {
        refuse(fmt::format("{} bytes are declared at buffer {}, and {} has {} there", length->second, binding.index,
                           slot.buffer->describe(), binding.length));
        return;
      }
      binding.length = length->second;
      binding.reads = declared_->reads[binding.index];
      binding.writes = declared_->writes[binding.index];
      const auto fits = [&](const mnk::Region& region) { return isInside(region, binding.length); };
      if (!std::all_of(binding.reads.begin(), binding.reads.end(), fits) ||
          !std::all_of(binding.writes.begin(), binding.writes.end(), fits)) {
        refuse(fmt::format("an access is declared outside of the {} bytes bound at buffer {}", binding.length,
                           binding.index));
      }
      if (isReadOnly && !binding.writes.empty()) {
        refuse(fmt::format("writes are declared at buffer {}, which the kernel only reads", binding.index));
      }
      return;
    }
    refuse(fmt::format("the debug group declares no length for buffer {}", binding.index));
  }
  binding.reads = {{.offset = 0, .rowBytes = binding.length}};
  if (!isReadOnly) binding.writes = binding.reads;
}

void DispatchMaker::bindBuffer(const Argument& argument, const BufferSlot& slot, mnk::Dispatch& dispatch) {
  if (slot.buffer->isDead) {
    return refuse(fmt::format("{} at buffer {} is deallocated", slot.buffer->describe(), argument.index));
  }
  const uint64_t length = slot.buffer->bytes - slot.offset;
  if (length < argument.minimumBytes) {
    return refuse(fmt::format("{} bytes of {} are bound at buffer {}, expected at least {}", length,
                              slot.buffer->describe(), argument.index, argument.minimumBytes));
  }
  if (slot.offset % argument.alignment != 0) {
    return refuse(fmt::format("buffer {} is bound at byte {} of {}, expected a multiple of {}", argument.index,
                              slot.offset, slot.buffer->describe(), argument.alignment));
  }
  mnk::Binding binding{.index = argument.index, .buffer = slot.buffer->host, .offset = slot.offset, .length = length};
  declare(binding, slot, argument.isReadOnly);
  dispatch.buffers.push_back(std::move(binding));
}

void DispatchMaker::bind(const Argument& argument, mnk::Dispatch& dispatch) {
  if (argument.kind == Argument::Kind::threadgroupMemory) {
    const uint64_t bytes = encoder_.threadgroupBytes[argument.index];
    if (bytes == 0) {
      return refuse(fmt::format("no length is set for threadgroup memory {}", argument.index));
    }
    if (bytes < argument.minimumBytes) {
      return refuse(fmt::format("{} bytes are set for threadgroup memory {}, expected at least {}", bytes,
                                argument.index, argument.minimumBytes));
    }
    dispatch.threadgroupMemory.push_back({argument.index, static_cast<uint32_t>(bytes)});
    return;
  }
  const BufferSlot& slot = encoder_.slots[argument.index];
  if (slot.isEmpty()) return refuse(fmt::format("nothing is bound at buffer {}", argument.index));
  if (slot.buffer) return bindBuffer(argument, slot, dispatch);
  if (slot.bytes.size() < argument.minimumBytes) {
    return refuse(fmt::format("{} bytes are set at buffer {}, expected at least {}", slot.bytes.size(), argument.index,
                              argument.minimumBytes));
  }
  if (!argument.isReadOnly) {
    return refuse(fmt::format("setBytes: is used for buffer {}, which the kernel writes", argument.index));
  }
  dispatch.inlines.push_back({argument.index, slot.bytes});
}

void DispatchMaker::checkHazards(const mnk::Dispatch& dispatch) {
  if (!declared_) return;
  std::vector<DeclaredAccess> accesses;
  for (const mnk::Binding& binding : dispatch.buffers) {
    const SoftBuffer* buffer = encoder_.slots[binding.index].buffer;
    const auto add = [&](const std::vector<mnk::Region>& regions, bool isWrite) {
      for (const mnk::Region& region : regions) {
        accesses.push_back({.buffer = buffer,
                            .isUntracked = buffer->isUntracked(),
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
    encoder_.breakRule(*conflict);
  }
}

std::optional<RecordedStep> DispatchMaker::make(mnk::Grid::Unit unit, MTL::Size extent, MTL::Size group) {
  SoftPipeline* const pipeline = encoder_.pipeline;
  if (!pipeline) {
    refuse("a dispatch without a pipeline");
    return std::nullopt;
  }
  if (pipeline->isDead) {
    encoder_.pipeline = nullptr;
    refuse(fmt::format("{} is deallocated", pipeline->describe()));
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

}  // namespace softmetal
