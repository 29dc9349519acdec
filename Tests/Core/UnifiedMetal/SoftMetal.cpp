// Made by .ci/unify.
// clang-format off
#include "SoftMetal/CommandBufferTests.cpp"
#include "SoftMetal/CounterTests.cpp"
#include "SoftMetal/DeviceTests.cpp"
#include "SoftMetal/EncoderTests.cpp"
#include "SoftMetal/ExecutionTests.cpp"
#include "SoftMetal/FaultTests.cpp"
#include "SoftMetal/FoundationTests.cpp"
#include "SoftMetal/HazardTests.cpp"
#include "SoftMetal/ObjectTests.cpp"
#include "SoftMetal/PipelineTests.cpp"
#include "SoftMetal/SoftMetalFixture.cpp"
#include "Metal/MetalSubmissionTests.cpp"
