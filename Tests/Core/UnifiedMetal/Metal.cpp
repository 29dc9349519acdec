// Made by .ci/unify.
// clang-format off
#include "Metal/EmbeddedLibraryTests.cpp"
#include "Metal/MetalBufferTests.cpp"
#include "Metal/MetalCApiTests.cpp"
#include "Metal/MetalDeviceTests.cpp"
#include "Metal/MetalFailureTests.cpp"
#include "Metal/MetalFixture.cpp"
#include "Metal/MetalInFlightTests.cpp"
#include "Metal/MetalLibraryTests.cpp"
#include "Metal/MetalOpTimesTests.cpp"
#include "Metal/MetalPipelineTests.cpp"
#include "Metal/SelectorLists.cpp"
#include "SoftMetal/RuntimeTests.cpp"
