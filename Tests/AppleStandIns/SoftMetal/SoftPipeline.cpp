#include "SoftPipeline.hpp"

#include <fmt/format.h>

#include <functional>

namespace softmetal {

namespace {

SoftReflection* reflect(const mnk::Pipeline& pipeline) {
  std::vector<Ref<Object>> bindings;
  for (const mnk::Pipeline::Argument& argument : pipeline.arguments()) {
    auto* binding = make<SoftBinding>();
    binding->argument = argument;
    bindings.push_back(Ref<Object>::adopt(binding));
  }
  if (machine().reflectsOthers) {
    auto* unused = make<SoftBinding>();
    unused->argument = {.index = 30, .minimumBytes = 4};
    unused->used = false;
    auto* array = make<SoftBinding>();
    array->argument = {.kind = mnk::Pipeline::Argument::Kind::threadgroupMemory, .index = 0, .minimumBytes = 64};
    array->isParameter = false;
    for (SoftBinding* other : {unused, array}) bindings.push_back(Ref<Object>::adopt(other));
  }
  auto* reflection = make<SoftReflection>();
  reflection->list = Ref<SoftArray>::adopt(makeArray(std::move(bindings)));
  return autoreleased(reflection);
}

SoftPipeline* makePipeline(SoftDevice* device, SoftFunction* function, SoftError** error) {
  addPipeline(fmt::format("{} {}", function->key.text(), std::hash<std::string>()(function->library->text)));
  if (function->device() != device) {
    violate(fmt::format("{}: a pipeline was requested with function {} of another device", device->describe(),
                        function->key.function));
    return nullptr;
  }
  if (shallFail(Call::pipeline)) {
    giveError(error, kPipelineErrorDomain, 2, "the pipeline was made to fail");
    return nullptr;
  }
  auto host = device->host->registry().pipeline(function->key);
  if (!host) {
    giveError(error, kPipelineErrorDomain, 2, host.error().message());
    return nullptr;
  }
  auto* pipeline = make<SoftPipeline>();
  pipeline->owner = Ref<SoftDevice>(device);
  pipeline->key = function->key;
  pipeline->host = std::move(*host);
  pipeline->maxThreads = device->about.maxTotalThreadsPerThreadgroup;
  return pipeline;
}

}  // namespace

void SoftPipelineDescriptor::setComputeFunction(SoftFunction* newFunction) {
  function = Ref<SoftFunction>(newFunction ? usable(newFunction, "setComputeFunction:") : nullptr);
}

void SoftPipelineDescriptor::reset() {
  function = {};
  maxThreads = 0;
  isMultipleOfWidth = false;
  setLabelText("");
}

void SoftPipeline::finish() {
  key.library.reset();
  host.reset();
  owner = {};
}

Object* SoftBinding::name() {
  return pooledString(fmt::format("{}{}", isBuffer() ? "buffer" : "threadgroup", argument.index));
}
MTL::BindingType SoftBinding::type() {
  return isBuffer() ? MTL::BindingTypeBuffer : MTL::BindingTypeThreadgroupMemory;
}
MTL::BindingAccess SoftBinding::access() {
  return argument.isReadOnly ? MTL::BindingAccessReadOnly : MTL::BindingAccessReadWrite;
}
SoftPipeline* SoftDevice::newPipeline(SoftFunction* function, SoftError** error) {
  return newPipelineReflected(function, MTL::PipelineOptionNone, nullptr, error);
}

SoftPipeline* SoftDevice::newPipelineReflected(SoftFunction* function, MTL::PipelineOption options,
                                               SoftReflection** reflection, SoftError** error) {
  SoftFunction* const checked = usable(function, "newComputePipelineStateWithFunction:");
  SoftPipeline* const pipeline = checked ? makePipeline(this, checked, error) : nullptr;
  if (pipeline && reflection && options != MTL::PipelineOptionNone) *reflection = reflect(*pipeline->host);
  return pipeline;
}

SoftPipeline* SoftDevice::newPipelineDescribed(SoftPipelineDescriptor* descriptor, MTL::PipelineOption options,
                                               SoftReflection** reflection, SoftError** error) {
  SoftPipelineDescriptor* const checked = usable(descriptor, "newComputePipelineStateWithDescriptor:");
  if (!checked) return nullptr;
  if (!checked->function) {
    violate(fmt::format("{} has no computeFunction", checked->describe()));
    return nullptr;
  }
  if (checked->maxThreads > about.maxTotalThreadsPerThreadgroup) {
    giveError(error, kPipelineErrorDomain, 2,
              fmt::format("maxTotalThreadsPerThreadgroup {} is more than the {} of the device", checked->maxThreads,
                          about.maxTotalThreadsPerThreadgroup));
    return nullptr;
  }
  SoftPipeline* const pipeline = newPipelineReflected(checked->function.get(), options, reflection, error);
  if (!pipeline) return nullptr;
  pipeline->setLabelText(checked->labelText());
  pipeline->isMultipleOfWidth = checked->isMultipleOfWidth;
  if (checked->maxThreads > 0) pipeline->maxThreads = checked->maxThreads;
  return pipeline;
}

void definePipelines() {
  define<SoftPipelineDescriptor>("MTLComputePipelineDescriptor")
      .withAlloc()
      .on<&SoftPipelineDescriptor::labelMessage>("label")
      .on<&SoftPipelineDescriptor::setLabelMessage>("setLabel:")
      .on<&SoftPipelineDescriptor::computeFunction>("computeFunction")
      .on<&SoftPipelineDescriptor::setComputeFunction>("setComputeFunction:")
      .on<&SoftPipelineDescriptor::maxTotalThreads>("maxTotalThreadsPerThreadgroup")
      .on<&SoftPipelineDescriptor::setMaxTotalThreads>("setMaxTotalThreadsPerThreadgroup:")
      .on<&SoftPipelineDescriptor::multipleOfWidth>("threadGroupSizeIsMultipleOfThreadExecutionWidth")
      .on<&SoftPipelineDescriptor::setMultipleOfWidth>("setThreadGroupSizeIsMultipleOfThreadExecutionWidth:")
      .on<&SoftPipelineDescriptor::reset>("reset");
  define<SoftPipeline>("MTLComputePipelineState")
      .on<&SoftPipeline::labelMessage>("label")
      .on<&SoftPipeline::device>("device")
      .on<&SoftPipeline::maxTotalThreads>("maxTotalThreadsPerThreadgroup")
      .on<&SoftPipeline::threadExecutionWidth>("threadExecutionWidth")
      .on<&SoftPipeline::staticMemory>("staticThreadgroupMemoryLength");
  define<SoftReflection>("MTLComputePipelineReflection").on<&SoftReflection::bindings>("bindings");
  define<SoftBinding>("MTLBinding")
      .on<&SoftBinding::name>("name")
      .on<&SoftBinding::type>("type")
      .on<&SoftBinding::access>("access")
      .on<&SoftBinding::index>("index")
      .on<&SoftBinding::isUsed>("isUsed")
      .on<&SoftBinding::isArgument>("isArgument")
      .on<&SoftBinding::dataSize>("bufferDataSize")
      .on<&SoftBinding::alignment>("bufferAlignment")
      .on<&SoftBinding::dataType>("bufferDataType")
      .on<&SoftBinding::dataSize>("threadgroupMemoryDataSize")
      .on<&SoftBinding::alignment>("threadgroupMemoryAlignment");
}

}  // namespace softmetal
