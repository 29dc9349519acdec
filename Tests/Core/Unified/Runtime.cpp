// Made by .ci/unify.
// clang-format off
#include "Runtime/BlockSumsTests.cpp"
#include "Runtime/BufferTests.cpp"
#include "Runtime/CommandEncoderTests.cpp"
#include "Runtime/EmbeddedShadersTests.cpp"
#include "Runtime/FailedMemoryPropertyTests.cpp"
#include "Runtime/HandlerWaitTests.cpp"
#include "Runtime/KernelRegistryTests.cpp"
#include "Runtime/OpTimesTests.cpp"
#include "Runtime/ScratchPoolTests.cpp"
#include "Runtime/ShippedLibraryTests.cpp"
#include "Runtime/UserKernelTests.cpp"
#include "Ops/FlashDecode/FlashDecodeRuleTests.cpp"
