// MTLLibrary, MTLFunction, MTLFunctionConstantValues and MTLCompileOptions; MTLComputePipelineState with its descriptor
// and its reflection.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "HostLibrary.hpp"
#include "MLXNativeKernels/KernelRegistry.hpp"
#include "SoftDevice.hpp"

namespace softmetal {

struct SoftConstantValues : Object {
  std::vector<mnk::FunctionConstant> values;

  void set(const void* value, MTL::DataType type, NS::UInteger index);
};

struct SoftCompileOptions : Object {
  // The newest language version, used by default.
  CompileOptions values = {.languageVersion = (4 << 16)};

  void setLanguageVersion(MTL::LanguageVersion version) { values.languageVersion = version; }
  void setFastMathEnabled(bool enabled) { values.fastMathEnabled = enabled; }
};

struct SoftLibrary : Object {
  Ref<SoftDevice> owner;
  std::shared_ptr<mnk::Library> host;
  std::vector<std::string> names;
  std::string text;  // its source; empty: unknown

  void finish();
  bool has(const std::string& name) const;
  Object* functionNames();
  SoftFunction* newFunction(Object* name);
  SoftFunction* newFunctionWithConstants(Object* name, SoftConstantValues* values, SoftError** error);
};

struct SoftFunction : Object {
  Ref<SoftLibrary> library;
  mnk::KernelKey key;

  void finish();
};

struct SoftPipelineDescriptor : Object {
  Ref<SoftFunction> function;

  void finish() { function = {}; }
};

struct SoftPipeline : Object {
  Ref<SoftDevice> owner;
  mnk::KernelKey key;
  std::shared_ptr<mnk::Pipeline> host;

  void finish();
  NS::UInteger maxThreads() { return owner->about.maxTotalThreadsPerThreadgroup; }
  NS::UInteger threadExecutionWidth() { return owner->about.threadExecutionWidth; }
  NS::UInteger staticMemory() { return owner->about.staticThreadgroupMemoryLength; }
};

struct SoftBinding : Object {
  bool isUsed = true;
  bool isArgument = true;
  mnk::Pipeline::Argument argument;

  MTL::BindingType type() {
    const bool isBuffer = argument.kind == mnk::Pipeline::Argument::Kind::buffer;
    return isBuffer ? MTL::BindingTypeBuffer : MTL::BindingTypeThreadgroupMemory;
  }
  MTL::BindingAccess access() { return argument.isReadOnly ? MTL::BindingAccessReadOnly : MTL::BindingAccessReadWrite; }
  NS::UInteger index() { return argument.index; }
  NS::UInteger dataSize() { return argument.minimumBytes; }
  NS::UInteger alignment() { return argument.alignment; }
};

struct SoftReflection : Object {
  Ref<SoftArray> bindings;

  void finish() { bindings = {}; }
};

// The name of a function constant without a value that the function references in its source, directly or indirectly;
// empty if there is none, or if the source has no function whose name is a prefix of this one up to a "_".
std::string missingConstant(const std::string& text, const std::string& function, const mnk::host::HostLibrary& library,
                            std::span<const mnk::FunctionConstant> values);

}  // namespace softmetal
