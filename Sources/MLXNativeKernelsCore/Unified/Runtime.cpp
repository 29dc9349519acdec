// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Runtime/Buffer.cpp"
#include "Runtime/Completion.cpp"
#include "Runtime/Device.cpp"
#include "Runtime/Dispatch.cpp"
#include "Runtime/DispatchRules.cpp"
#include "Runtime/KernelRegistry.cpp"
#include "Runtime/MatrixProbe.cpp"
#include "Runtime/MemoryErrors.cpp"
#include "Runtime/MemoryTracker.cpp"
#include "Runtime/RecordedStep.cpp"
#include "Runtime/RegionSet.cpp"
#include "Runtime/ScratchPool.cpp"
#include "Runtime/Shape.cpp"
#include "Runtime/ThreadgroupShape.cpp"
#pragma clang attribute pop
#include "Runtime/CommandEncoder.cpp"
#include "Runtime/FloatElements.cpp"
#include "Runtime/HazardTracker.cpp"
#include "Runtime/RepeatedEncoding.cpp"
#include "Runtime/RepeatedOp.cpp"
#include "Runtime/Tensor.cpp"
