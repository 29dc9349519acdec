// MTLComputePipelineState with its descriptor and its reflection.
#pragma once
#include <memory>

#include "SoftLibrary.hpp"

namespace softmetal {

struct SoftPipelineDescriptor : Object {
  Ref<SoftFunction> function;
  NS::UInteger maxThreads = 0;
  bool isMultipleOfWidth = false;

  Object* computeFunction() { return retainedInPool(function.get()); }
  void setComputeFunction(SoftFunction* newFunction);
  NS::UInteger maxTotalThreads() { return maxThreads; }
  void setMaxTotalThreads(NS::UInteger most) { maxThreads = most; }
  bool multipleOfWidth() { return isMultipleOfWidth; }
  void setMultipleOfWidth(bool promised) { isMultipleOfWidth = promised; }
  void reset();
  void finish() { function = {}; }
};

struct SoftPipeline : Object {
  Ref<SoftDevice> owner;
  mnk::KernelKey key;
  std::shared_ptr<mnk::Pipeline> host;
  NS::UInteger maxThreads = 0;
  bool isMultipleOfWidth = false;

  void finish();
  SoftDevice* device() { return owner.get(); }
  NS::UInteger maxTotalThreads() { return maxThreads; }
  NS::UInteger threadExecutionWidth() { return owner->about.threadExecutionWidth; }
  NS::UInteger staticMemory() { return owner->about.staticThreadgroupMemoryLength; }
};

struct SoftBinding : Object {
  bool used = true;
  bool isParameter = true;
  mnk::Pipeline::Argument argument;

  bool isBuffer() const { return argument.kind == mnk::Pipeline::Argument::Kind::buffer; }
  Object* name();
  MTL::BindingType type();
  MTL::BindingAccess access();
  NS::UInteger index() { return argument.index; }
  bool isUsed() { return used; }
  bool isArgument() { return isParameter; }
  NS::UInteger dataSize() { return argument.minimumBytes; }
  NS::UInteger alignment() { return argument.alignment; }
  MTL::DataType dataType() { return MTL::DataTypeNone; }
};

struct SoftReflection : Object {
  Ref<SoftArray> list;

  Object* bindings() { return retainedInPool(list.get()); }
  void finish() { list = {}; }
};

}  // namespace softmetal
