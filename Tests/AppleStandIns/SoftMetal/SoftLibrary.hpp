// MTLLibrary, MTLFunction and MTLComputePipelineState.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "HostLibrary.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "SoftDevice.hpp"

namespace softmetal {

struct SoftConstantValues;

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

struct SoftPipeline : Object {
  Ref<SoftDevice> owner;
  mnk::KernelKey key;
  std::shared_ptr<mnk::Pipeline> host;

  void finish();
  NS::UInteger maxThreads() { return owner->about.maxTotalThreadsPerThreadgroup; }
  NS::UInteger threadExecutionWidth() { return owner->about.threadExecutionWidth; }
  NS::UInteger staticMemory() { return owner->about.staticThreadgroupMemoryLength; }
};

// The name of a function constant without a value that the function references in its source, directly or indirectly;
// empty if there is none, or if the source has no function whose name is a prefix of this one up to a "_".
std::string missingConstant(const std::string& text, const std::string& function, const mnk::host::HostLibrary& library,
                            std::span<const mnk::FunctionConstant> values);

}  // namespace softmetal
