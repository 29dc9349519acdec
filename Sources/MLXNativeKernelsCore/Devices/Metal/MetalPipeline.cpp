#include "Devices/Metal/MetalPipeline.hpp"

#include <algorithm>

#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

using Argument = Pipeline::Argument;

MTL::DataType dataType(ConstantType type) {
  switch (type) {
    case ConstantType::boolean:
      return MTL::DataTypeBool;
    case ConstantType::i32:
      return MTL::DataTypeInt;
    case ConstantType::u32:
      return MTL::DataTypeUInt;
    case ConstantType::f32:
      return MTL::DataTypeFloat;
  }
  return MTL::DataTypeNone;
}

Error unknownFunction(const MetalLibrary& library, const KernelKey& key) {
  return metalError(ErrorCode::shaderBuild, fmt::format("library {} has no such function", library.label()),
                    key.function, oneOf(library.functionNames(), "a library with kernels"),
                    "Export the kernel with export_kernel or instantiate_kernel, or correct the name.");
}

Error unusable(std::string what, const KernelKey& key, const NS::Error* error) {
  return metalError(ErrorCode::shaderBuild, std::move(what), reason(error),
                    fmt::format("{} with a value of the declared type for each constant it needs", key.text()),
                    "Correct the kernel or its constants.");
}

// Metal refuses a function if a constant has no value, so none defaults to false or zero.
Result<Owned<MTL::Function>> makeFunction(MetalLibrary& library, const KernelKey& key) {
  const auto names = library.functionNames();
  if (!std::binary_search(names.begin(), names.end(), key.function)) return unknownFunction(library, key);
  MNK_TRY(const auto native, library.nativeWith(key.function));
  const auto values = owned(MTL::FunctionConstantValues::alloc()->init());
  for (const FunctionConstant& constant : key.constants) {
    values->setConstantValue(&constant.bits, dataType(constant.type), constant.index);
  }
  NS::Error* error = nullptr;
  auto function = owned(native->newFunction(nsText(key.function), values.get(), &error));
  if (!function) return unusable(fmt::format("function {} cannot be specialized", key.function), key, error);
  return function;
}

uint32_t number(NS::UInteger value) {
  return static_cast<uint32_t>(value);
}

std::vector<Argument> argumentsOf(const MTL::ComputePipelineReflection* reflection) {
  std::vector<Argument> arguments;
  const NS::Array* bindings = reflection ? reflection->bindings() : nullptr;
  const NS::UInteger count = bindings ? bindings->count() : 0;
  for (NS::UInteger i = 0; i < count; ++i) {
    const auto* binding = bindings->object<MTL::Binding>(i);
    if (!binding->used()) continue;
    Argument argument{.index = number(binding->index())};
    if (binding->type() == MTL::BindingTypeBuffer) {
      argument.kind = Argument::Kind::buffer;
      const auto* buffer = static_cast<const MTL::BufferBinding*>(binding);
      argument.minimumBytes = number(buffer->bufferDataSize());
      argument.alignment = std::max(1u, number(buffer->bufferAlignment()));
      // Metal does not distinguish references from pointers.
      argument.mayBeEmpty = argument.minimumBytes <= kNothingBytes;
      argument.isReadOnly = binding->access() == MTL::ArgumentAccessReadOnly;
    } else if (binding->type() == MTL::BindingTypeThreadgroupMemory && binding->argument()) {
      // An array that the kernel declares is not an argument.
      argument.kind = Argument::Kind::threadgroupMemory;
      argument.minimumBytes = number(static_cast<const MTL::ThreadgroupBinding*>(binding)->threadgroupMemoryDataSize());
    } else {
      continue;
    }
    arguments.push_back(argument);
  }
  return arguments;
}

}  // namespace

MetalPipeline::MetalPipeline(Owned<MTL::ComputePipelineState> native, std::vector<Argument> arguments)
    : native_(std::move(native)),
      arguments_(std::move(arguments)),
      maxThreads_(number(native_->maxTotalThreadsPerThreadgroup())),
      staticThreadgroupBytes_(number(native_->staticThreadgroupMemoryLength())) {}

MetalPipeline::~MetalPipeline() {
  const AutoreleasePool pool;
  native_.reset();
}

Result<std::shared_ptr<Pipeline>> MetalPipeline::make(MTL::Device* device, std::shared_ptr<MetalLibrary> library,
                                                      const KernelKey& key) {
  const AutoreleasePool pool;
  MNK_TRY(auto function, makeFunction(*library, key));
  const auto descriptor = owned(MTL::ComputePipelineDescriptor::alloc()->init());
  descriptor->setComputeFunction(function.get());
  descriptor->setLabel(nsText(key.text()));
  MTL::ComputePipelineReflection* reflection = nullptr;
  NS::Error* error = nullptr;
  auto native =
      owned(device->newComputePipelineState(descriptor.get(), MTL::PipelineOptionArgumentInfo, &reflection, &error));
  if (!native) return unusable(fmt::format("no pipeline can be made of {}", key.text()), key, error);
  if (native->threadExecutionWidth() != kSimdgroupWidth) {
    return metalError(ErrorCode::unsupported, "this GPU's simdgroups have another width",
                      fmt::format("{} threads", native->threadExecutionWidth()),
                      fmt::format("{} threads", kSimdgroupWidth), "Use an Apple GPU, or the Host device.");
  }
  return std::shared_ptr<Pipeline>(std::make_shared<MetalPipeline>(std::move(native), argumentsOf(reflection)));
}

}  // namespace mnk::metal
