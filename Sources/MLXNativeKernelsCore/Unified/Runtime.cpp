// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Runtime/CommandEncoder.cpp"
#include "Runtime/FloatElements.cpp"
#include "Runtime/HazardTracker.cpp"
#include "Runtime/RecordedStep.cpp"
#include "Runtime/RepeatedEncoding.cpp"
#include "Runtime/RepeatedOp.cpp"
#include "Runtime/Shape.cpp"
#include "Runtime/Tensor.cpp"

// What follows neither iterates over data nor encodes steps: it is optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
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
#include "Runtime/RegionSet.cpp"
#include "Runtime/RotatedRows.cpp"
#include "Runtime/ScratchPool.cpp"
#include "Runtime/ThreadgroupShape.cpp"
#pragma clang attribute pop
