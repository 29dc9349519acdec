// Made by .ci/unify.
// clang-format off
#include "Ops/Common/CodecSignsTests.cpp"
#include "Ops/Common/CodecTablesTests.cpp"
#include "Ops/Common/HeadsViewTests.cpp"
#include "Ops/Common/ParameterLayoutTests.cpp"
#include "Cache/AttentionCachePropertyTests.cpp"
#include "Cache/AttentionCacheRotaryTests.cpp"
#include "Host/HostCheckingTextTests.cpp"
#include "Runtime/FailedMemoryTests.cpp"
