// Made by .ci/unify.
// clang-format off
#include "Ops/MultiRoPE/MultiRoPECase.cpp"
#include "Ops/MultiRoPE/MultiRoPECases.cpp"
#include "Ops/MultiRoPE/MultiRoPEReference.cpp"
#include "Ops/MultiRoPE/MultiRoPERotaryCases.cpp"
#include "Ops/MultiRoPE/MultiRoPERun.cpp"
