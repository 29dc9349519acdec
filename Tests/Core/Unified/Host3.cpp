// Made by .ci/unify.
// clang-format off
#include "Host/HostToolchainTests.cpp"
