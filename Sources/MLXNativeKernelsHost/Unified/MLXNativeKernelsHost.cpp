// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
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
