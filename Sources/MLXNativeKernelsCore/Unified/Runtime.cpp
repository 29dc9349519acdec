// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Runtime/CommandEncoder.cpp"
#include "Runtime/FloatElements.cpp"
#include "Runtime/HazardTracker.cpp"
#include "Runtime/RecordedStep.cpp"
#include "Runtime/RepeatedOp.cpp"
#include "Runtime/Tensor.cpp"

// What follows neither iterates over data nor encodes steps: it is optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Runtime/Device.cpp"
#include "Runtime/Dispatch.cpp"
#include "Runtime/RotatedRows.cpp"
#include "Runtime/WorkInFlight.cpp"
#pragma clang attribute pop
