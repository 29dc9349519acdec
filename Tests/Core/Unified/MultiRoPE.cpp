// Made by .ci/unify.
// clang-format off
#include "Ops/MultiRoPE/MultiRoPECoverageTests.cpp"
#include "Ops/MultiRoPE/MultiRoPEIdentityTests.cpp"
#include "Ops/MultiRoPE/MultiRoPEPlanTests.cpp"
#include "Ops/MultiRoPE/MultiRoPEPrecisionTests.cpp"
#include "Ops/MultiRoPE/MultiRoPERuleTests.cpp"
#include "Ops/MultiRoPE/MultiRoPETests.cpp"
#include "Ops/MultiRoPE/RotaryFrequenciesTests.cpp"
#include "Ops/MultiRoPE/RotaryTableTests.cpp"
