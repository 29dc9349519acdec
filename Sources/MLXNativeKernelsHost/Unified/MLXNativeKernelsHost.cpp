// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Checking/GuardedRun.cpp"
#include "Checking/Observer.cpp"
#include "Checking/Shadow.cpp"

// What follows neither iterates over data nor encodes steps: it is optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Checking/CheckedRun.cpp"
#include "Checking/DeclaredAccesses.cpp"
#include "Checking/Findings.cpp"
#include "Checking/GuardedCopies.cpp"
#include "Checking/SourceLocations.cpp"
#include "Checking/Traps.cpp"
#include "ChildProcess.cpp"
#include "DispatchRunner.cpp"
#include "EmbeddedSources.cpp"
#include "HostBuffer.cpp"
#include "HostDevice.cpp"
#include "HostLibrary.cpp"
#include "HostOptions.cpp"
#include "HostPipeline.cpp"
#include "HostQueue.cpp"
#include "HostSubmission.cpp"
#include "ModuleCompiler.cpp"
#include "Processor.cpp"
#include "TemporaryDirectory.cpp"
#include "WorkerPool.cpp"
#pragma clang attribute pop
