// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Checking/GuardedRun.cpp"
#include "Checking/Shadow.cpp"

// What follows neither iterates over data nor encodes steps: it is optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Checking/CheckedRun.cpp"
#include "Checking/Findings.cpp"
#include "ChildProcess.cpp"
#include "HostDevice.cpp"
#include "HostLibrary.cpp"
#include "HostOptions.cpp"
#include "HostSubmission.cpp"
#include "ModuleCompiler.cpp"
#include "TemporaryDirectory.cpp"
#pragma clang attribute pop
