#include <functional>

#include "SoftLibrary.hpp"

namespace softmetal {

namespace {

constexpr std::string_view kErrorDomain = "CompilerError";

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
    unused->isUsed = false;
    auto* array = make<SoftBinding>();
    array->argument = {.kind = mnk::Pipeline::Argument::Kind::threadgroupMemory, .index = 0, .minimumBytes = 64};
    array->isArgument = false;
    for (SoftBinding* other : {unused, array}) bindings.push_back(Ref<Object>::adopt(other));
  }
  auto* reflection = make<SoftReflection>();
  reflection->bindings = Ref<SoftArray>::adopt(makeArray(std::move(bindings)));
  return autoreleased(reflection);
}

SoftPipeline* makePipeline(SoftDevice* device, SoftFunction* function, SoftError** error) {
  addPipeline(fmt::format("{} {}", function->key.text(), std::hash<std::string>()(function->library->text)));
  if (function->library->owner.get() != device) {
    return violate("{}: a pipeline was requested with function {} of another device", device->describe(),
                   function->key.function);
  }
  if (shallFail(Call::pipeline)) return giveError(error, kErrorDomain, 2, "the pipeline was made to fail");
  auto host = device->host->registry().pipeline(function->key);
  if (!host) return giveError(error, kErrorDomain, 2, host.error().message());
  auto* pipeline = make<SoftPipeline>();
  pipeline->owner = Ref<SoftDevice>(device);
  pipeline->key = function->key;
  pipeline->host = std::move(*host);
  return pipeline;
}

}  // namespace

void SoftPipeline::finish() {
  key.library.reset();
  host.reset();
  owner = {};
}

SoftPipeline* SoftDevice::newPipeline(SoftFunction* function, SoftError** error) {
  SoftFunction* const checked = usable(function);
  return checked ? makePipeline(this, checked, error) : nullptr;
}

SoftPipeline* SoftDevice::newPipelineDescribed(SoftPipelineDescriptor* descriptor, MTL::PipelineOption options,
                                               SoftReflection** reflection, SoftError** error) {
  SoftPipelineDescriptor* const checked = usable(descriptor);
  if (!checked) return nullptr;
  if (!checked->function) return violate("{} has no computeFunction", checked->describe());
  SoftPipeline* const pipeline = newPipeline(checked->function.get(), error);
  if (!pipeline) return nullptr;
  pipeline->setLabelText(checked->labelText());
  if (reflection && options != MTL::PipelineOptionNone) *reflection = reflect(*pipeline->host);
  return pipeline;
}

void definePipelines() {
  define<SoftPipelineDescriptor>("MTLComputePipelineDescriptor")
      .withAlloc()
      .sets<&SoftPipelineDescriptor::function>("setComputeFunction:");
  define<SoftPipeline>("MTLComputePipelineState")
      .on<&SoftPipeline::maxThreads>("maxTotalThreadsPerThreadgroup")
      .on<&SoftPipeline::threadExecutionWidth>("threadExecutionWidth")
      .on<&SoftPipeline::staticMemory>("staticThreadgroupMemoryLength");
  define<SoftReflection>("MTLComputePipelineReflection").on<&SoftReflection::bindings>("bindings");
  define<SoftBinding>("MTLBinding")
      .on<&SoftBinding::type>("type")
      .on<&SoftBinding::access>("access")
      .on<&SoftBinding::index>("index")
      .on<&SoftBinding::isUsed>("isUsed")
      .on<&SoftBinding::isArgument>("isArgument")
      .on<&SoftBinding::dataSize>("bufferDataSize")
      .on<&SoftBinding::alignment>("bufferAlignment")
      .on<&SoftBinding::dataSize>("threadgroupMemoryDataSize");
}

}  // namespace softmetal
