// Made by .ci/unify.
// clang-format off
#include "Ops/Common/KVCodecGoldenTests.cpp"
