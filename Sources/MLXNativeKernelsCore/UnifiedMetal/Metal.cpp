// Files that SwiftPM compiles together, because most compile time goes to headers.

// Optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Devices/Metal/EmbeddedShaders.cpp"
#include "Devices/Metal/MetalBuffer.cpp"
#include "Devices/Metal/MetalDevice.cpp"
#include "Devices/Metal/MetalLibrary.cpp"
#include "Devices/Metal/MetalSubmission.cpp"
#include "Devices/Metal/MetalSupport.cpp"
#pragma clang attribute pop
